//! Which paths and methods there are, and that the description says the same.

mod scene;

use std::collections::BTreeSet;

use scene::{JSON, Scene};

#[test]
fn the_gateway_lives_and_its_store_answers() {
    let scene = Scene::new();
    let alive = scene.get("/health");
    assert_eq!((alive.status, alive.text()), (200, "I'm alive!"));
    assert_eq!(scene.get("/health/ready").status, 200);
}

#[test]
fn the_root_lives_and_names_the_routes_as_text_or_json() {
    let scene = Scene::new();
    let root = scene.get("/");
    let text = root.text();
    assert!(root.status == 200 && text.starts_with("I'm alive!\n\n"), "{text}");
    for route in [
        "POST   /push/{queue}  ",
        "GET    /messages/{queue}/{id}  ",
        "DELETE /messages/{queue}/{id}  ",
        "GET    /say  ",
    ] {
        assert!(text.contains(&format!("\n{route}")), "{route}: {text}");
    }
    let json = scene.ask("GET", "/", &[("accept", "application/json")], b"").json();
    assert_eq!(json["says"], "I'm alive!");
    let routes = json["routes"].as_array().unwrap();
    assert_eq!(routes.len(), text.lines().count() - 2, "{json}");
    assert!(
        routes.iter().all(|it| it["method"].is_string() && it["path"].is_string() && it["summary"] != ""),
        "{json}"
    );
}

#[test]
fn a_gateway_without_recipes_has_none_of_their_routes_and_says_how_to_have_them() {
    let scene = Scene::with(|options| options.recipes = None);
    let asked = [
        ("GET", "/subsetSum?data=[1,-1]&sum=0"),
        ("GET", "/totalSales"),
        ("POST", "/sales"),
        ("GET", "/say"),
        ("PUT", "/say"),
    ];
    for (method, path) in asked {
        let told = scene.ask(method, path, &[], b"").problem(404, "no-recipes");
        let path = path.split('?').next().unwrap();
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("{path} is a recipe")) && detail.contains("--recipes"), "{detail}");
    }
    let described = scene.get("/api/openapi.json").json();
    let paths: Vec<_> = described["paths"].as_object().unwrap().keys().collect();
    assert!(paths.iter().all(|path| !asked.iter().any(|(_, asked)| asked.starts_with(path.as_str()) && *path != "/")));
    assert!(!scene.get("/").text().contains("/subsetSum"));
    assert!(scene.get("/health").status == 200 && scene.ask("POST", "/push/q", &[JSON], b"1").status == 202);
}

#[test]
fn what_is_unknown_is_not_found_and_a_wrong_method_is_told_the_right_ones() {
    let scene = Scene::new();
    for unknown in ["/healthy", "/push", "/push/", "/push/q/1", "/health/", "//health", "/..%2fhealth"] {
        scene.get(unknown).problem(404, "unknown");
    }
    for (asked, meant) in [("/totalsales", "/totalSales"), ("/health/", "/health"), ("/Push/q", "/push/{queue}")] {
        let told = scene.get(asked).problem(404, "unknown");
        assert!(told["detail"].as_str().unwrap().contains(&format!("did you mean {meant}?")), "{told}");
    }
    let wrong = scene.get("/push/q");
    let told = wrong.problem(405, "method");
    assert_eq!(told["detail"], "this method is not for /push/{queue}: use POST");
    assert_eq!(wrong.header("allow"), Some("POST"));
    let told = scene.ask("PUT", "/messages/q/1", &[], b"").problem(405, "method");
    assert_eq!(told["detail"], "this method is not for /messages/{queue}/{id}: use GET or DELETE");
    scene.ask("OPTIONS", "/push/q", &[], b"").problem(405, "method");
    scene.ask("BREW", "/health", &[], b"").problem(405, "method");
}

#[test]
fn a_name_in_the_query_that_a_route_does_not_know_is_refused_and_a_header_that_was_meant_is_told() {
    let scene = Scene::new();
    let said = |method: &str, path: &str| {
        let body: &[u8] = if method == "POST" { b"1" } else { b"" };
        let problem = scene.ask(method, path, &[JSON], body).problem(400, "bad-query");
        problem["detail"].as_str().unwrap().to_owned()
    };
    assert!(said("POST", "/push/q?wait=5").ends_with("send the header `Prefer: wait=N`"));
    for path in ["/push/q?key=order-7", "/call/q?idempotency_key=order-7"] {
        assert!(said("POST", path).ends_with("send the header `Idempotency-Key: KEY`"), "{}", said("POST", path));
    }
    assert_eq!(scene.ready("q"), 0);
    for (method, path) in [
        ("POST", "/call/q?wait=5"),
        ("GET", "/messages/q/1?secret"),
        ("DELETE", "/messages/q/1?secret=1"),
        ("POST", "/sales?secret=1"),
        ("GET", "/say?secret=1"),
    ] {
        assert_eq!(said(method, path), "the query has a name that is not known; this path has none", "{path}");
    }
    assert!(said("GET", "/say?%").contains("no code"));
    // Those who watch over processes, and who fetches the description, may add what they like.
    for path in ["/health?x=1", "/health/ready?x=1", "/api/openapi.json?x=1"] {
        assert_eq!(scene.get(path).status, 200, "{path}");
    }
}

/// Clients take such steps out of a URL: what was pushed there would be pushed to, asked for or cancelled elsewhere.
#[test]
fn a_name_that_is_a_step_of_a_path_is_no_queue() {
    let scene = Scene::new();
    for queue in [".", "..", "%2E", "%2e%2E"] {
        let problem = scene.push(queue, b"1").problem(400, "bad-queue");
        assert!(problem["detail"].as_str().unwrap().ends_with("and is not . or .. alone"), "{problem}");
        scene.get(&format!("/messages/{queue}/1")).problem(400, "bad-queue");
    }
    assert_eq!(scene.push("...", b"1").status, 202);
}

#[test]
fn the_description_names_every_path_with_its_methods() {
    let scene = Scene::new();
    let description = scene.get("/api/openapi.json").json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"), "{description}");
    for (path, item) in description["paths"].as_object().unwrap() {
        let described: BTreeSet<String> =
            item.as_object().unwrap().keys().map(|method| method.to_ascii_uppercase()).collect();
        let path = path.replace("{queue}", "q").replace("{id}", "1");
        let allowed = scene.ask("BREW", &path, &[], b"");
        allowed.problem(405, "method");
        let allowed = allowed.header("allow").unwrap_or_default().to_owned();
        let mut allowed: BTreeSet<String> = allowed.split(',').map(|it| it.trim().to_owned()).collect();
        // What can be got can be asked for without its body.
        allowed.remove("HEAD");
        assert_eq!(allowed, described, "{path}");
    }
}
