use std::process::Command;

#[test]
fn the_zombies_write_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_fenced_writes")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "zombie leads and writes with token 1\n\
         successor leads and writes with token 2\n\
         zombie's write arrives with token 1, and is refused: 2 has been seen\n\
         log: token 1 by zombie\n\
         log: token 2 by successor\n"
    );
}
