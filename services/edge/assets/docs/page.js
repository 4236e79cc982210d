// Shows the document of this very gateway. It calls no other host: no validator, no fonts, no proxy.
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  // Colouring an answer of some 100 kB blocks the page for seconds.
  syntaxHighlight: { activated: false },
  presets: [SwaggerUIBundle.presets.apis],
  layout: "PlainLayout",
  plugins: [LayoutPlugin, WatchPlugin],
});
