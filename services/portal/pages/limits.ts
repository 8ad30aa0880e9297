/** The limits of the API as its text promises them (test/unit/portal/pages.test.ts compares them with the services' defaults). */
export const limits = {
  requestsPerMinute: 120,
  pageSizeDefault: 50,
  pageSizeMax: 100,
  cacheSeconds: 60,
  statsCacheSeconds: 300,
  activeKeys: 3,
} as const
