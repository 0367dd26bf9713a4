//! Archives of skills: checked, unpacked, digested, packed.
use crate::execution::FileEntry;
#[derive(Debug)]
pub struct ArtifactTar;
impl ArtifactTar {
    pub fn start(&mut self, _: &str, _: u64) -> std::io::Result<()> {
        Ok(())
    }
    pub fn write(&mut self, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
    pub fn end(&mut self) -> std::io::Result<FileEntry> {
        Err(std::io::ErrorKind::Other.into())
    }
}
