// The parts of the viewer that this page shows, with one landmark, headings in order, and no control inside of another.

/** The plugin of the viewer. */
function LayoutPlugin({ React }) {
  const h = React.createElement;

  function PlainLayout({ getComponent, specSelectors }) {
    const status = specSelectors.loadingStatus();
    if (status === "failed" || status === "failedConfig") return h("p", { role: "alert" }, "The document could not be loaded.");
    if (status !== "success") return h("p", { role: "status" }, "Loading…");
    const part = (name, isContainer = true) => h(getComponent(name, isContainer));
    return h("div", { className: "swagger-ui" },
      part("SvgAssets", false),
      h("div", { className: "wrapper" }, part("InfoContainer")),
      part("FilterContainer"),
      h("div", { className: "wrapper" },
        h("h2", { className: "unseen" }, "Operations"), part("operations"),
        h("h3", { className: "unseen" }, "Objects"), part("Models")));
  }

  return {
    components: { PlainLayout },
    wrapComponents: {
      // The same answer as of GET without its body: the headers are described there.
      OperationContainer: (Operation) =>
        class extends Operation {
          render() {
            return this.props.op.get("method") === "head" ? null : super.render();
          }
        },
      // The path of an operation is in the button that opens it; that sets the fragment, too.
      DeepLink: (DeepLink) => (props) => (props.path.includes("/") ? h("span", null, props.text) : h(DeepLink, props)),
    },
  };
}

/** The name of a field that the viewer leaves without one. */
function nameOf(field) {
  const parameter = field.closest("tr[data-param-name]");
  if (parameter) return parameter.dataset.paramName;
  return field.matches(".examples-select-element") ? "Example" : "Body";
}

/** Names fields, and lets keys reach what scrolls; the viewer draws both without. */
function completeLabels() {
  for (const field of document.querySelectorAll("#page :is(select, textarea, input):not([aria-label], [id])")) {
    field.setAttribute("aria-label", nameOf(field));
  }
  for (const code of document.querySelectorAll("#page pre:not([tabindex])")) code.tabIndex = 0;
  // Each operation has a table of responses; as regions of one name they would be landmarks.
  for (const table of document.querySelectorAll("#page table[role=region]")) table.removeAttribute("role");
}

new MutationObserver(completeLabels).observe(document.getElementById("page"), { childList: true, subtree: true });
