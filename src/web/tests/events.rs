//! What pages are sent, and when their connections end.

use super::*;

#[actix::test]
async fn events_are_a_picture_and_then_what_changed() {
    tokio::time::pause();
    let system = System::new("g", "<img src=x onerror=1>");
    let app = app!("/troupe", system.dashboard());
    let response = get!(app, "/troupe/events");
    assert_eq!(header(&response, CONTENT_TYPE), "text/event-stream");
    let mut body = Box::pin(response.into_body());
    let first = next_events(body.as_mut()).await.unwrap();
    assert_eq!(first[0].0, "picture");
    loop {
        // the first sample, with whatever is in the first picture already
        let change = next_events(body.as_mut()).await.unwrap().remove(0);
        assert_eq!(change.0, "change");
        let records = &change.1["patch"]["0"]["members"]["g_a"]["records"];
        if records.as_u64() > Some(1) {
            // only what is different
            assert!(change.1["patch"]["0"].get("topics").is_none(), "{}", change.1);
            assert_eq!(change.1["samples"]["0"].as_array().unwrap().len(), 4);
            break;
        }
    }
    let response = get!(app, "/troupe/history?group=0&topic=%3Cimg%20src%3Dx%20onerror%3D1%3E&partition=7");
    let json: Value = test::read_body_json(response).await;
    assert_eq!(json["lag"][0][1], 3);
    let json: Value = test::read_body_json(get!(app, "/troupe/history?group=0")).await;
    assert_eq!(json["totals"][0][1], 3);
    assert_eq!(get!(app, "/troupe/history?group=9").status(), StatusCode::NOT_FOUND);
}

#[actix::test]
async fn a_page_that_falls_behind_is_sent_a_picture_anew_rather_than_all_it_missed() {
    tokio::time::pause();
    let system = System::new("g", "t");
    let app = app!("", system.dashboard());
    let mut body = Box::pin(get!(app, "/events").into_body());
    assert_eq!(next_events(body.as_mut()).await.unwrap()[0].0, "picture");
    let before = system.asked.load(Ordering::SeqCst);
    while system.asked.load(Ordering::SeqCst) < before + 20 {
        tokio::time::sleep(history::EVERY).await;
    }
    assert_eq!(next_events(body.as_mut()).await.unwrap()[0].0, "picture");
}

#[actix::test]
async fn after_the_systems_have_shut_down_pages_end_and_nobody_is_asked_any_more() {
    tokio::time::pause();
    let system = System::new("g", "t");
    let app = app!("", system.dashboard());
    let mut body = Box::pin(get!(app, "/events").into_body());
    next_events(body.as_mut()).await.unwrap();
    system.ended.store(true, Ordering::SeqCst);
    let mut last = None;
    while let Some(mut events) = next_events(body.as_mut()).await {
        last = events.pop();
    }
    assert_eq!(last.unwrap().0, "ended", "and the connection ends");
    let asked = system.asked.load(Ordering::SeqCst);
    tokio::time::sleep(history::EVERY * 10).await;
    for path in ["/status", "/group", "/healthz", "/readyz", "/livez"] {
        assert_eq!(get!(app, path).status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    let metrics = String::from_utf8(test::read_body(get!(app, "/metrics")).await.to_vec()).unwrap();
    assert!(!metrics.contains("g_a"), "{metrics}");
    assert_eq!(system.asked.load(Ordering::SeqCst), asked);
    // a page that comes now is shown how it stood last
    let mut body = Box::pin(get!(app, "/events").into_body());
    let events = next_events(body.as_mut()).await.unwrap();
    assert_eq!((events[0].0.as_str(), &events[0].1["0"]["health"]), ("picture", &"ended".into()));
    assert!(events[0].1["0"]["ended"].is_i64() && events[0].1["0"]["topics"]["t"]["7"].is_object());
    assert_eq!(events[1].0, "ended");
    assert_eq!(next_events(body.as_mut()).await, None);
}

#[actix::test]
async fn to_close_the_dashboard_ends_the_connections() {
    tokio::time::pause();
    let dashboard = System::new("g", "t").dashboard();
    let app = app!("", dashboard);
    let mut body = Box::pin(get!(app, "/events").into_body());
    next_events(body.as_mut()).await.unwrap();
    dashboard.close();
    let mut last = None;
    while let Some(mut events) = next_events(body.as_mut()).await {
        last = events.pop();
    }
    assert_eq!(last.unwrap().0, "closing");
}
