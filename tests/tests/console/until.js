// Waits until a condition is true; a condition that throws is not yet.
condition => new Promise((done, fail) => {
    const end = Date.now() + 40000;
    const look = () => {
        let is = false;
        try { is = Boolean(condition()); } catch { /* not there yet */ }
        if (is) done(true);
        else if (Date.now() < end) setTimeout(look, 20);
        else fail(new Error('it did not come; the page shows: ' + document.body?.innerText.slice(0, 3000)));
    };
    look();
})
