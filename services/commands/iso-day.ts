/**
 * Whether the day of an ISO 8601 time exists: true for 2026-02-28T09:00Z, false for 2026-02-30. JavaScript reads a day that its
 * month does not have as a day of the next month.
 */
export function hasRealDay(text: string): boolean {
  const date = text.slice(0, 'yyyy-mm-dd'.length)
  const midnight = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date)
}
