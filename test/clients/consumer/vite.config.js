// Without Vite's own code for old browsers, so that the script has only what the page and the client need.
export default { build: { modulePreload: { polyfill: false } } }
