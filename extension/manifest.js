/**
 * Makes the manifest of each browser's package. With `access` "all" (the demo and the tests) the package may read every
 * site. With "asked" (the stores) it may read no site until the viewer turns one on.
 */
const EVERY_SITE = ["http://*/*", "https://*/*"];
/** None of them makes a browser warn. `webRequest` shows the policies (CSP) that come with a page. */
const PERMISSIONS = ["activeTab", "scripting", "storage", "webRequest"];
/** The first version with `data_collection_permissions` and `location.ancestorOrigins`. */
const FIREFOX_VERSION_MIN = "153.0";
const ID = "{6d3c1b5e-9f0a-4b7e-8a51-3f2f0c9d7e64}";

function manifest(browser, { version, access }) {
  const common = {
    manifest_version: 3,
    name: "__MSG_name__",
    default_locale: "en",
    version,
    description: "__MSG_description__",
    icons: { 16: "icons/16.png", 32: "icons/32.png", 48: "icons/48.png", 128: "icons/128.png" },
    action: {
      default_title: "__MSG_name__",
      default_popup: "popup.html",
      default_icon: { 16: "icons/16.png", 32: "icons/32.png" },
    },
    options_ui: { page: "options.html", open_in_tab: true },
    web_accessible_resources: [{ resources: ["frame.html"], matches: EVERY_SITE }],
    content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'" },
    ...sites(access),
  };
  return browser === "firefox" ? { ...common, ...firefox() } : { ...common, ...chromium(common.permissions) };
}

function sites(access) {
  if (access === "asked") return { optional_host_permissions: EVERY_SITE, permissions: PERMISSIONS };
  const script = (file, more) => ({
    matches: EVERY_SITE,
    js: [file],
    run_at: "document_start",
    all_frames: true,
    ...more,
  });
  return {
    host_permissions: EVERY_SITE,
    permissions: PERMISSIONS,
    content_scripts: [script("content.js"), script("page.js", { world: "MAIN" })],
  };
}

function chromium(permissions) {
  return {
    minimum_chrome_version: "123",
    // A private window cannot show a frame of the normal extension, so it has its own transport.
    incognito: "split",
    permissions: [...permissions, "offscreen"],
    background: { service_worker: "background.js" },
    cross_origin_embedder_policy: { value: "require-corp" },
    cross_origin_opener_policy: { value: "same-origin" },
  };
}

function firefox() {
  return {
    background: { scripts: ["background.js"] },
    browser_specific_settings: {
      gecko: {
        id: ID,
        strict_min_version: FIREFOX_VERSION_MIN,
        // The extension cannot work without sending the addresses of videos to the proxies.
        data_collection_permissions: { required: ["browsingActivity"], optional: ["technicalAndInteraction"] },
      },
    },
  };
}

/** The manifest as the package's file. Its version is the one in package.json. */
function manifestText(browser, access) {
  const { version } = require("./package.json");
  return `${JSON.stringify(manifest(browser, { version, access }), null, 2)}\n`;
}

module.exports = { manifest, manifestText, ID };
