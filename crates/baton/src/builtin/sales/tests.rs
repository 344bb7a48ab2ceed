use std::io::{BufReader, Cursor, Read};

use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;

const HEADER: &str = "transaction_id,item,amount\n";

struct Scene {
    _folder: TempDir,
    sales: Sales,
}

fn scene() -> Scene {
    let folder = TempDir::new().unwrap();
    let sales = Sales::at(folder.path().join("sales.db"));
    Scene { _folder: folder, sales }
}

impl Scene {
    async fn load(&self, text: impl AsRef<[u8]>) -> Result<(u64, u64), SalesError> {
        let text = Cursor::new(text.as_ref().to_vec());
        self.sales.load(text).await.map(|Added { stored, known }| (stored, known))
    }

    async fn total(&self, item: Option<&str>) -> String {
        self.sales.total(item).await.unwrap().to_string()
    }
}

#[tokio::test]
async fn totals_are_exact_for_any_item_and_a_sum_may_be_wider_than_any_amount() {
    let scene = scene();
    assert!(matches!(scene.sales.total(None).await, Err(SalesError::Missing(_))));
    let long = "x".repeat(MAX_TEXT_BYTES);
    let text = format!(
        "{HEADER}1,constructor,1.10\r\n2,__proto__,2.20\n3,,3\n4,\"a,\"\"b\"\"\nc\",4.4\n\n5,{long},5\n6,book,0.1\n7,book,0.2"
    );
    assert_eq!(scene.load(&text).await.unwrap(), (7, 0));
    for (item, total) in [
        (Some("constructor"), "1.10"),
        (Some("__proto__"), "2.20"),
        (Some(""), "3"),
        (Some("a,\"b\"\nc"), "4.40"),
        (Some(&*long), "5"),
        (Some("book"), "0.30"),
        (Some("BOOK"), "0"),
        (Some("toString"), "0"),
        (None, "16"),
    ] {
        assert_eq!(scene.total(item).await, total, "{item:?}");
    }
    let most = "92233720368547758.07";
    let wide = format!(
        "{HEADER}8,wide,{most}\n9,wide,{most}\n10,wide,-{most}\n11,wide,-{most}\n12,wide,{most}\n13,wide,{most}\n"
    );
    scene.load(wide).await.unwrap();
    assert_eq!(scene.total(Some("wide")).await, "184467440737095516.14");
    let back = format!("{HEADER}14,wide,-{most}\n15,wide,-{most}\n");
    scene.load(back).await.unwrap();
    assert_eq!(scene.total(Some("wide")).await, "0");
}

#[tokio::test]
async fn a_first_line_that_is_no_header_is_shown_and_a_folder_that_is_missing_is_told() {
    let scene = scene();
    assert!(matches!(scene.sales.look(), Err(SalesError::Missing(_))));
    for (text, found) in [
        ("", "it is empty;"),
        ("id;item\u{1b}[2J;amount\n1;2;3\n", "it is \"id;item\\u{1b}[2J;amount\";"),
        (&"ü".repeat(100), &*format!("it is \"{}\" …;", "ü".repeat(60))),
    ] {
        let told = scene.load(text).await.unwrap_err().to_string();
        assert!(told.contains(found), "{told}");
    }
    scene.load(HEADER).await.unwrap();
    assert_eq!(scene.sales.look(), Ok(()));
    let folder = scene._folder.path().join("none");
    let nowhere = Sales::at(folder.join("sales.db"));
    let missing = SalesError::Folder { folder: folder.clone(), file: "sales.db".into() };
    assert_eq!((nowhere.look(), nowhere.add(Vec::new()).await), (Err(missing.clone()), Err(missing)));
    assert!(!folder.exists());
    assert!(matches!(Sales::at("no such file").look(), Err(SalesError::Missing(_))), "it is in this folder");
}

#[tokio::test]
async fn a_row_that_is_wrong_or_contradicts_a_known_one_is_told_by_its_line_and_nothing_is_stored() {
    let scene = scene();
    assert_eq!(scene.load(format!("{HEADER}a,book,1\nb,book,2\n")).await.unwrap(), (2, 0));
    // The same again changes nothing.
    assert_eq!(scene.load(format!("{HEADER}b,book,2.00\na,book,1\nc,book,4\n")).await.unwrap(), (1, 2));
    let line = |error: &SalesError| match error {
        SalesError::Row { line, .. } | SalesError::Conflict { line } => *line,
        other => panic!("{other}"),
    };
    let good = "n,book,100\n";
    for (text, at) in [
        (b"".to_vec(), 1),
        (b"id,item,amount\n1,2,3\n".to_vec(), 1),
        (format!("{HEADER}{good}x,book\n").into_bytes(), 3),
        (format!("{HEADER}{good}x,book,1,2\n").into_bytes(), 3),
        (format!("{HEADER}{good}\n\nx,book,1.234\n").into_bytes(), 5),
        (format!("{HEADER}{good}x,book,\n").into_bytes(), 3),
        (format!("{HEADER}{good},book,1\n").into_bytes(), 3),
        (format!("{HEADER}{good}x,{},1\n", "y".repeat(MAX_TEXT_BYTES + 1)).into_bytes(), 3),
        (format!("{HEADER}{good}x,{},1\n", "y".repeat(1 << 20)).into_bytes(), 3),
        (format!("{HEADER}{good}x,\"y\nz,1\n").into_bytes(), 3),
        (format!("{HEADER}{good}x,\"y\"z,1\n").into_bytes(), 3),
        (format!("{HEADER}{good}x,y\"z,1\n").into_bytes(), 3),
        (format!("{HEADER}m,\"1\n2\n3\",5\n{good}x,y,no\n").into_bytes(), 6),
        ([HEADER.as_bytes(), good.as_bytes(), b"x,\xff,1\n"].concat(), 3),
        (format!("{HEADER}{good}a,book,2\n").into_bytes(), 3),
        (format!("{HEADER}{good}a,game,1\n").into_bytes(), 3),
        (format!("{HEADER}{good}n,book,101\n").into_bytes(), 3),
    ] {
        let error = scene.load(&text).await.unwrap_err();
        assert_eq!(line(&error), at, "{error}: {:?}", String::from_utf8_lossy(&text));
        assert!(error.to_string().ends_with("nothing was stored"));
    }
    assert_eq!(scene.total(None).await, "7");
    // As some programs write it.
    assert_eq!(scene.load(format!("\u{feff}{HEADER}d,book,1\n")).await.unwrap(), (1, 0));
}

#[tokio::test]
async fn random_sales_add_up_to_what_was_drawn_and_are_known_when_they_come_again() {
    let scene = scene();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let drawn: Vec<_> = random_sales(20_000, seed).collect();
    assert_eq!(scene.sales.add(drawn.clone()).await.unwrap(), Added { stored: 20_000, known: 0 });
    assert_eq!(scene.sales.add(drawn.clone()).await.unwrap(), Added { stored: 0, known: 20_000 });
    let sum = |item: Option<&str>| -> i128 {
        let of = drawn.iter().filter(|(_, sale)| item.is_none_or(|item| item == sale.item));
        of.map(|(_, sale)| i128::from(sale.amount.minor_units)).sum()
    };
    for item in [None, Some("book"), Some("tea"), Some("nothing")] {
        assert_eq!(scene.sales.total(item).await.unwrap().minor_units, sum(item), "{item:?}");
    }
}

#[tokio::test]
async fn another_file_of_the_same_name_is_seen_and_a_foreign_one_is_left_alone() {
    let scene = scene();
    scene.load(format!("{HEADER}a,book,1\n")).await.unwrap();
    let first = scene.sales.key(None).await.unwrap();
    assert_eq!(scene.sales.known_key(None), Some(first.clone()));
    let item = scene.sales.key(Some("all")).await.unwrap();
    assert!(item != first && scene.sales.prefix().await.unwrap().covers(&item));
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", scene.sales.path().display())).ok();
    }
    while scene.sales.known_key(None).is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(matches!(scene.sales.key(None).await, Err(SalesError::Missing(_))));
    scene.load(format!("{HEADER}a,book,5\n")).await.unwrap();
    assert_eq!(scene.total(None).await, "5");
    assert_ne!(scene.sales.key(None).await.unwrap(), first);
    let folder = TempDir::new().unwrap();
    let (text, other) = (folder.path().join("text"), folder.path().join("other.db"));
    std::fs::write(&text, "something else, and of some length so that nobody takes it for an empty file of anything")
        .unwrap();
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    for path in [text, other] {
        let before = std::fs::read(&path).unwrap();
        let sales = Sales::at(&path);
        assert_eq!(sales.total(None).await, Err(SalesError::Foreign(path.clone())));
        assert_eq!(sales.add(Vec::new()).await, Err(SalesError::Foreign(path.clone())));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn a_new_file_is_its_owners_alone() {
    let folder = tempfile::TempDir::new().unwrap();
    let sales = Sales::at(folder.path().join("sales.db"));
    sales.add(vec![(1, Sale::new("a", "book", "1").unwrap())]).await.unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.unwrap().metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_scan_that_nobody_waits_for_ends() {
    let scene = scene();
    scene.sales.add(random_sales(200_000, 1).collect()).await.unwrap();
    let file = scene.sales.shared.file(false).unwrap();
    assert_eq!(file.total(None, &Arc::new(AtomicBool::new(true))), Err(SalesError::Unwanted));
    scene.sales.total(None).await.unwrap();
}

/// An input that says when it is asked for more, and then waits for it.
struct Slow {
    asked: mpsc::UnboundedSender<()>,
    more: std::sync::mpsc::Receiver<String>,
}

impl Read for Slow {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.asked.send(()).ok();
        let more = self.more.recv_timeout(Duration::from_secs(30)).unwrap_or_default();
        into[..more.len()].copy_from_slice(more.as_bytes());
        Ok(more.len())
    }
}

#[tokio::test]
async fn others_write_while_a_load_waits_for_its_input() {
    let scene = scene();
    for (end, result) in [
        ("x,book\n", Err(SalesError::Row { line: 4, why: "it has 2 fields, not transaction_id,item,amount".into() })),
        ("x\n", Err(SalesError::Row { line: 4, why: "it has 1 field, not transaction_id,item,amount".into() })),
        ("b,book,9\n", Err(SalesError::Conflict { line: 4 })),
        ("b,book,2\n", Ok(Added { stored: 2, known: 1 })),
    ] {
        let ((asked, mut is_asked), (more, from)) = (mpsc::unbounded_channel(), std::sync::mpsc::channel());
        let sales = scene.sales.clone();
        let load = tokio::spawn(async move { sales.load(BufReader::new(Slow { asked, more: from })).await });
        for text in [HEADER, "m,book,10\nn,book,20\n"] {
            is_asked.recv().await.unwrap();
            more.send(text.to_owned()).unwrap();
        }
        is_asked.recv().await.unwrap();
        // As this process does, and as another.
        for sales in [scene.sales.clone(), Sales::with_patience(scene.sales.path(), Duration::ZERO)] {
            sales.add(vec![(1, Sale::new("b", "book", "2").unwrap())]).await.unwrap();
        }
        assert_eq!(scene.total(None).await, "2");
        more.send(end.to_owned()).unwrap();
        drop(more);
        assert_eq!(load.await.unwrap(), result);
    }
    assert_eq!(scene.total(None).await, "32");
}

#[test]
fn those_who_wait_to_write_hold_one_thread_and_are_told_in_time() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).max_blocking_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let scene = scene();
        scene.load(format!("{HEADER}a,book,1\n")).await.unwrap();
        let another = Connection::open(scene.sales.path()).unwrap();
        another.execute_batch("BEGIN IMMEDIATE").unwrap();
        let all = |patience| {
            let sales = Sales::with_patience(scene.sales.path(), patience);
            let add = |nth: u64| {
                let (sales, sale) = (sales.clone(), Sale::new(&nth.to_string(), "book", "1").unwrap());
                tokio::spawn(async move { sales.add(vec![(1, sale)]).await })
            };
            (0..100).map(add).collect::<Vec<_>>()
        };
        // One bound for all of them, not one after the other.
        let begun = Instant::now();
        for added in all(Duration::from_millis(200)) {
            assert_eq!(added.await.unwrap(), Err(SalesError::Busy(scene.sales.path().to_owned())));
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let waiting = all(Duration::from_secs(60));
        let total = tokio::time::timeout(Duration::from_secs(30), scene.total(None));
        assert_eq!(total.await.unwrap(), "1");
        assert!(waiting.iter().all(|added| !added.is_finished()));
        another.execute_batch("ROLLBACK").unwrap();
        for added in waiting {
            assert_eq!(added.await.unwrap(), Ok(Added { stored: 1, known: 0 }));
        }
        assert_eq!(scene.total(None).await, "101");
    });
}
