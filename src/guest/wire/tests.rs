//! Frames and streams as a hostile other side would say them.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

#[tokio::test]
async fn rejects_oversized_frame_unread() {
    let mut bytes = Vec::new();
    send(&mut bytes, &ToHost::Hello { version: VERSION })
        .await
        .unwrap();
    let read: Option<ToHost> = receive(&mut &bytes[..], 1024).await.unwrap();
    assert!(matches!(read, Some(ToHost::Hello { version: VERSION })));
    let huge = u32::MAX.to_be_bytes();
    assert!(receive::<_, ToHost>(&mut &huge[..], 1024).await.is_err());
    assert!(receive::<_, ToHost>(&mut &bytes[..7], 1024).await.is_err());
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(receive(&mut &bytes[..], FRAME_TO_HOST_BYTES_MAX))
}

// A-01, for this module: the same cases in each run.
proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn random_bytes_are_no_frame(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        for framed in [bytes.clone(), [&length[..], &bytes].concat()] {
            prop_assert!(!matches!(read::<ToHost>(&framed), Ok(Some(_))));
            prop_assert!(!matches!(read::<Item>(&framed), Ok(Some(_))));
            prop_assert!(!matches!(read::<ToGuest>(&framed), Ok(Some(_))));
        }
    }

    #[test]
    fn reader_never_panics(text in r#"\{"type":"[a-z]{0,8}"(,"[a-z]{1,6}":[-0-9{}\["e.]{0,12}){0,4}\}"#) {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        let framed = [&length[..], text.as_bytes()].concat();
        let _ = (read::<ToHost>(&framed), read::<Item>(&framed), read::<ToGuest>(&framed));
    }

    #[test]
    fn truncated_frame_is_an_error(at in 0_usize..64) {
        let said = serde_json::to_vec(&ToHost::Hello { version: VERSION }).unwrap();
        let whole = [&u32::try_from(said.len()).unwrap().to_be_bytes()[..], &said].concat();
        prop_assert!(matches!(read::<ToHost>(&whole), Ok(Some(_))));
        let cut = at % whole.len();
        match read::<ToHost>(&whole[..cut]) {
            Ok(None) => prop_assert_eq!(cut, 0),
            said => prop_assert!(said.is_err()),
        }
    }
}

#[tokio::test]
async fn relays_both_directions_until_the_end() {
    let (near, far) = tokio::io::duplex(1024);
    let mut host = Link::new(near, Side::Host);
    let mut guest = Link::new(far, Side::Guest);
    let mut control = host.open(Channel::Control).await.unwrap();
    send(&mut control, &ToGuest::KeepAlive).await.unwrap();
    let (channel, mut stream) = guest.accept().await.unwrap();
    assert_eq!(channel, Channel::Control);
    let frame: Option<ToGuest> = receive(&mut stream, 1024).await.unwrap();
    assert!(matches!(frame, Some(ToGuest::KeepAlive)));
    guest.close().await;
    host.ended().await;
}
