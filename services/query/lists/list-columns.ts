/** The columns of the list index: one typed array per field, indexed by slot, and numbers in place of repeated texts. */

export type ListColumns = ReturnType<typeof newColumns>

/** Creates columns for this number of slots. */
export function newColumns(length: number) {
  return {
    status: new Uint16Array(length),
    category: new Uint32Array(length),
    /** See `slugCodeOf`. */
    slug: new Uint32Array(length),
    launch: new Float64Array(length),
    end: new Float64Array(length),
    pledged: new Float64Array(length),
    backers: new Float64Array(length),
    updated: new Float64Array(length),
    /** The version of the index at which the slot got its present campaign. A list from before it means another campaign. */
    taken: new Float64Array(length),
  }
}

/** Copies the columns into longer ones. */
export function grown(old: ListColumns, length: number): ListColumns {
  const columns = newColumns(length)
  for (const name of Object.keys(old) as (keyof ListColumns)[]) columns[name].set(old[name])
  return columns
}

/** Numbers texts in the order of their first use. */
export interface Dictionary {
  add(text: string): number
  /** Null if no campaign ever had this text. */
  find(text: string): number | null
}

/** Creates an empty dictionary. */
export function createDictionary(): Dictionary {
  const numbers = new Map<string, number>()
  return {
    add(text) {
      let number = numbers.get(text)
      if (number === undefined) {
        number = numbers.size
        numbers.set(text, number)
      }
      return number
    },
    find: text => numbers.get(text) ?? null,
  }
}
