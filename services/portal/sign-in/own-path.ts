/** Where a person goes after signing in. Pure. */

/**
 * The path, if it is one of this portal; otherwise `undefined`. A link to the sign-in page must not lead people to another
 * site. A browser reads `\` as `/` and drops tabs and line ends, so `/\x` and `/<tab>/x` would be other hosts.
 */
export function ownPath(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > lengthMax || !pathPattern.test(text)) return undefined
  const url = new URL(text, base)
  // The resolved path is what a browser gets. `/.//x` resolves to `//x`, which would be another host.
  const path = `${url.pathname}${url.search}`
  return url.origin === base && !path.startsWith('//') ? path : undefined
}

const lengthMax = 1_024
const base = 'http://portal.invalid'
// Printable ASCII without the backslash: what a browser sends as a path, which begins with one slash.
const pathPattern = /^\/(?!\/)[!-[\]-~]*$/
