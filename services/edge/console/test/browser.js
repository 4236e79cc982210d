// What modules of the console need of a browser when they are loaded.
globalThis.document = { addEventListener() {}, visibilityState: "hidden" };
globalThis.window = globalThis;
globalThis.addEventListener = () => {};
globalThis.location = new URL("http://127.0.0.1/");
