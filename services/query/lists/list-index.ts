/**
 * The list index: the fields that lists filter and sort by, of every public campaign, in columns in memory. Pure.
 *
 * It answers any list query without ClickHouse, in the same order as the list statement (list-statements.ts). A
 * campaign has a slot in each column. A sort order is an array of slots. A change moves the changed slots, and only in the
 * orders whose values changed. 400,000 campaigns take about 65 MB.
 */
import { crc32 } from 'node:zlib'
import { digestNumber, digestText } from './digest.ts'
import { type IdList, slotIdList } from './id-list.ts'
import {
  createSlotOrder,
  type Pause,
  type SlotOrder,
  sortedByColumn,
  sortedUnlessInOrder,
} from './list-order.ts'
import { selectSlots } from './list-selection.ts'
import type { EntriesRow, ListQuery } from './list-statements.ts'

export type ListIndex = ReturnType<typeof createListIndex>

type SortedColumn = 'launch' | 'end' | 'pledged' | 'backers' | 'updated'

// Spare room for later campaigns, because growing copies all columns.
const roomShare = 1.1

// A slot without a campaign has it.
const noSlug = 0

/** Creates an empty index with room for `sizeExpected` campaigns. */
export function createListIndex({ sizeExpected }: { sizeExpected: number }) {
  const ids: string[] = []
  const slotOf = new Map<string, number>()
  const freeSlots: number[] = []
  /** Of the digest's numbers. */
  let sum = 0n
  /** Counts the changes of the index. */
  let version = 0
  // Statuses are few, and not a campaign's own texts, so none is released.
  const statuses = createDictionary()
  const categories = createDictionary()
  let columns = newColumns(Math.max(1_024, Math.ceil(sizeExpected * roomShare)))
  // JavaScript compares strings by UTF-16 units and ClickHouse by bytes. The results differ only for characters from
  // U+D800 on.
  let arePlain = true

  const compareSlots = (a: number, b: number) => compareIds(ids[a] ?? '', ids[b] ?? '', arePlain)
  const byId = createSlotOrder(compareSlots, () => sortedUnlessInOrder(usedSlots(ids), compareSlots))
  const orderBy = (column: SortedColumn, direction: 1 | -1) =>
    createSlotOrder(
      (a, b) => direction * ((columns[column][a] ?? 0) - (columns[column][b] ?? 0)) || compareSlots(a, b),
      () => sortedByColumn(byId.slots(), columns[column], direction),
    )
  const orders = {
    launch: orderBy('launch', -1),
    end: orderBy('end', 1),
    endDown: orderBy('end', -1),
    pledged: orderBy('pledged', -1),
    backers: orderBy('backers', -1),
    updated: orderBy('updated', -1),
  }
  const allOrders: readonly SlotOrder[] = [byId, ...Object.values(orders)]
  const ordersOf = (column: SortedColumn) =>
    column === 'end' ? [orders.end, orders.endDown] : [orders[column]]

  function newSlot(id: string): number {
    const slot = freeSlots.pop() ?? ids.length
    if (slot >= columns.updated.length) columns = grown(columns, Math.ceil(slot * roomShare) + 1)
    arePlain &&= !/[\ud800-\uffff]/.test(id)
    ids[slot] = id
    columns.taken[slot] = version
    slotOf.set(id, slot)
    return slot
  }

  /** Replaces a column's values in these slots, and moves those that differ or are new to their places. */
  function move(
    column: SortedColumn,
    values: readonly number[],
    slots: Uint32Array,
    added: ReadonlySet<number>,
  ): void {
    const { [column]: present } = columns
    const moved = slots.filter((slot, at) => added.has(slot) || present[slot] !== values[at])
    if (moved.length === 0) return
    const known = moved.filter(slot => !added.has(slot))
    for (const order of ordersOf(column)) order.takeOut(known)
    for (const [at, slot] of slots.entries()) present[slot] = values[at] ?? 0
    for (const order of ordersOf(column)) order.putIn(moved)
  }

  return {
    /** Public campaigns. */
    get size() {
      return slotOf.size
    },

    /** The digest of the campaigns as they are now. */
    digest: () => digestText(slotOf.size, sum),

    /** Adds these campaigns, or replaces them, in one step. No id may be there twice. */
    put(entries: EntriesRow): void {
      version++
      const slots = new Uint32Array(entries.ids.length)
      const added = new Set<number>()
      for (const [at, id] of entries.ids.entries()) {
        const known = slotOf.get(id)
        const slot = known ?? newSlot(id)
        slots[at] = slot
        if (known === undefined) added.add(slot)
        columns.status[slot] = statuses.add(entries.statuses[at] ?? '')
        const categoryBefore = columns.category[slot] ?? 0
        columns.category[slot] = categories.add(entries.categories[at] ?? '')
        if (known !== undefined) categories.release(categoryBefore)
        columns.slug[slot] = entries.slug_codes[at] ?? 0
        // The column still has the moment before.
        if (known !== undefined) sum -= digestNumber(id, columns.updated[slot] ?? 0)
        sum += digestNumber(id, entries.updates[at] ?? 0)
      }
      byId.putIn(Uint32Array.from(added))
      move('launch', entries.launch_dates, slots, added)
      move('end', entries.end_dates, slots, added)
      move('pledged', entries.pledged, slots, added)
      move('backers', entries.backers, slots, added)
      move('updated', entries.updates, slots, added)
    },

    /** Removes campaigns that are no longer public. Unknown ids are ignored. No id may be there twice. */
    remove(departed: readonly string[]): void {
      const slots = Uint32Array.from(departed.flatMap(id => slotOf.get(id) ?? []))
      for (const order of allOrders) order.takeOut(slots)
      for (const slot of slots) {
        slotOf.delete(ids[slot] ?? '')
        sum -= digestNumber(ids[slot] ?? '', columns.updated[slot] ?? 0)
        columns.slug[slot] = noSlug
        categories.release(columns.category[slot] ?? 0)
        ids[slot] = ''
        freeSlots.push(slot)
      }
    },

    /** Computes all sort orders, with pauses, so that no list has to wait for one. Nothing may change meanwhile. */
    async prepare(pause: Pause): Promise<void> {
      for (const order of allOrders) await order.prepare(pause)
    },

    /** When the campaign last changed, Unix ms; undefined if it is not public. */
    updatedAt(id: string): number | undefined {
      const slot = slotOf.get(id)
      return slot === undefined ? undefined : columns.updated[slot]
    },

    /** The only campaign whose slug has the code of this one. It may be another slug: compare that of the row. */
    idOfSlug(slug: string): string | undefined {
      const code = crc32(slug)
      const first = columns.slug.indexOf(code)
      const isOnlyOne = code !== noSlug && first >= 0 && columns.slug.indexOf(code, first + 1) < 0
      return isOnlyOne ? ids[first] : undefined
    },

    /**
     * The ids that a query matches, in its order. `now`: ClickHouse's clock, Unix ms. The list stays as it is when the
     * index changes, except that a campaign that is removed leaves it. `pause` is called every millisecond or so of work.
     */
    async select(query: ListQuery, now: number, pause: Pause): Promise<IdList> {
      const selectedAt = version
      const source = { columns: () => columns, slotsEnd: ids.length, statuses, categories, orders }
      const ordered = await selectSlots(source, query, now, pause)
      return slotIdList(ordered, slot => ((columns.taken[slot] ?? 0) > selectedAt ? '' : (ids[slot] ?? '')))
    },
  }
}

/** The slots that have a campaign, in ascending order. */
function usedSlots(ids: readonly string[]): Uint32Array {
  const used = new Uint32Array(ids.length)
  let count = 0
  for (const [slot, id] of ids.entries()) if (id !== '') used[count++] = slot
  return used.slice(0, count)
}

function compareIds(a: string, b: string, arePlain: boolean): number {
  if (!arePlain) return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return a < b ? -1 : a > b ? 1 : 0
}

/* The columns of the list index: one typed array per field, indexed by slot, and numbers in place of repeated texts. */

export type ListColumns = ReturnType<typeof newColumns>

/** Creates columns for this number of slots. */
function newColumns(length: number) {
  return {
    status: new Uint16Array(length),
    category: new Uint32Array(length),
    /** The CRC-32 of the slug, so that the index need not keep slugs. ClickHouse computes the same (list-statements.ts). */
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
function grown(old: ListColumns, length: number): ListColumns {
  const columns = newColumns(length)
  for (const name of Object.keys(old) as (keyof ListColumns)[]) columns[name].set(old[name])
  return columns
}

export type Dictionary = ReturnType<typeof createDictionary>

/**
 * Numbers texts in the order of their first use. A text without uses is forgotten. Its number is not given again, because a
 * list that is being made may still look for it.
 */
function createDictionary() {
  const numbers = new Map<string, number>()
  const used = new Map<number, { text: string; uses: number }>()
  let next = 0
  return {
    add(text: string): number {
      const number = numbers.get(text) ?? next++
      numbers.set(text, number)
      used.set(number, { text, uses: (used.get(number)?.uses ?? 0) + 1 })
      return number
    },
    /** Takes back one `add`. */
    release(number: number): void {
      const entry = used.get(number)
      if (entry === undefined || --entry.uses > 0) return
      used.delete(number)
      numbers.delete(entry.text)
    },
    /** Null if no campaign has this text. */
    find: (text: string) => numbers.get(text) ?? null,
  }
}
