//! Archives of skills: checked, unpacked, digested, packed.
