/** The campaigns that had events since they were looked at. */
export interface Touched {
  note(campaignIds: Iterable<string>): void
  /** The campaigns since the last call. The first call begins the collection. */
  take(): ReadonlySet<string>
}

export function createTouched(): Touched {
  let touched: Set<string> | undefined
  return {
    note(campaignIds) {
      if (touched) for (const id of campaignIds) touched.add(id)
    },
    take() {
      const taken = touched ?? new Set<string>()
      touched = new Set()
      return taken
    },
  }
}
