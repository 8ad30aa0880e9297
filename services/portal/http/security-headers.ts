/** The security headers of every answer of the portal: pages, files, redirects and errors. Pure. */

export interface SecurityHeadersOptions {
  portalUrl: string
  /** The reference calls it from the browser. */
  apiUrl: string
}

/** Nothing is loaded but what the portal itself serves, and no script or style stands in a page. */
export function securityHeaders({ portalUrl, apiUrl }: SecurityHeadersOptions): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${new URL(apiUrl).origin}`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ]
  const isHttps = new URL(portalUrl).protocol === 'https:'
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    // Not `no-referrer`: with it browsers send `Origin: null` with forms, and the check of the origin would refuse them.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    ...(isHttps && { 'strict-transport-security': 'max-age=31536000' }),
  }
}
