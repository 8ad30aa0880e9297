/**
 * The list index: what lists filter and sort by, of every public campaign, in columns in memory. Pure.
 *
 * It answers any list query without ClickHouse, in the order that the list statement gives (`statements.ts`). A campaign
 * has a slot in each column; sort orders are arrays of slots, brought up to date when they are next needed by merging
 * what has changed into what has not. 400,000 campaigns take some 45 MB.
 */
import type { Sort } from '../../contracts/api/parameters.ts'
import { nextTurn } from '../shared/next-turn.ts'
import { createIdSlots } from './id-slots.ts'
import { createSlotOrder, marked, type SlotOrder, sortedByColumn, sortedUnlessInOrder } from './list-order.ts'
import type { EntriesRow } from './rows.ts'
import { idSeparator, type ListQuery, noDate } from './statements.ts'

export interface ListIndex {
  /** Public campaigns. */
  readonly size: number
  /** Puts these campaigns in the place of what was known of them. */
  put(entries: EntriesRow): void
  /** Takes out campaigns that left the public; others are ignored. */
  remove(ids: readonly string[]): void
  /** Sorts by everything that there is a sort for, with pauses, so that no list waits for it. */
  prepare(): Promise<void>
  /** When a campaign changed last, Unix ms; undefined where it is not public. */
  updatedAt(id: string): number | undefined
  /** The ids that a query matches, joined by `idSeparator`, in its order. `now`: Unix ms, of ClickHouse's clock. */
  select(query: ListQuery, now: number): { joinedIds: string; total: number }
}

// Room for campaigns that come later: to grow means to copy all columns.
const roomShare = 1.1
// Below this share of all campaigns, to sort what has changed beats to walk a whole order.
const fewShare = 1 / 8

export function createListIndex({ sizeExpected }: { sizeExpected: number }): ListIndex {
  const ids: string[] = []
  const slots = createIdSlots(ids, { sizeExpected })
  const freeSlots: number[] = []
  const statuses = createDictionary()
  const categories = createDictionary()
  let columns = newColumns(Math.max(1_024, Math.ceil(sizeExpected * roomShare)))
  // JavaScript compares strings by UTF-16 units and ClickHouse by bytes; they differ beyond plain letters only.
  let arePlain = true

  const compareSlots = (a: number, b: number) => compareIds(ids[a] ?? '', ids[b] ?? '', arePlain)
  const byId = createSlotOrder({
    compare: compareSlots,
    sortAll: () => sortedUnlessInOrder(slots.slots(), compareSlots),
  })
  const orderBy = (column: 'launch' | 'end' | 'pledged' | 'backers' | 'updated', direction: 1 | -1) =>
    createSlotOrder({
      compare: (a, b) =>
        direction * ((columns[column][a] ?? 0) - (columns[column][b] ?? 0)) || compareSlots(a, b),
      sortAll: () => sortedByColumn(byId.slots(), columns[column], direction),
    })
  const orders = {
    launch: orderBy('launch', -1),
    end: orderBy('end', 1),
    pledged: orderBy('pledged', -1),
    backers: orderBy('backers', -1),
    updated: orderBy('updated', -1),
  }
  const allOrders: readonly SlotOrder[] = Object.values(orders)

  function slotOf(id: string): number {
    const known = slots.find(id)
    if (known !== undefined) return known
    const slot = freeSlots.pop() ?? ids.length
    if (slot >= columns.updated.length) columns = grown(columns, Math.ceil(slot * roomShare) + 1)
    arePlain &&= isPlain(id)
    ids[slot] = id
    slots.add(id, slot)
    byId.note(slot, true)
    return slot
  }

  const baseOf: Record<Exclude<Sort, 'ending_soon'>, SlotOrder> = {
    newest: orders.launch,
    most_funded: orders.pledged,
    most_backed: orders.backers,
  }

  /** The slots of a query, in the order that its sort begins from. */
  function candidates({ sort, updatedSince }: ListQuery): Uint32Array {
    const base = sort === 'ending_soon' ? orders.end : baseOf[sort]
    if (updatedSince === null) return base.slots()
    const byUpdate = orders.updated.slots()
    const changed = countWhile(byUpdate, slot => (columns.updated[slot] ?? 0) >= updatedSince)
    if (changed < byUpdate.length * fewShare) return base.arrange(byUpdate.subarray(0, changed))
    const { updated } = columns
    return marked(base.slots(), slot => (updated[slot] ?? 0) >= updatedSince)
  }

  function matching(query: ListQuery): Uint32Array {
    const found = candidates(query)
    if (query.status === null && query.category === null) return found
    const status = query.status === null ? undefined : statuses.find(query.status)
    const category = query.category === null ? undefined : categories.find(query.category)
    if (status === null || category === null) return new Uint32Array()
    return marked(
      found,
      slot =>
        (status === undefined || columns.status[slot] === status) &&
        (category === undefined || columns.category[slot] === category),
    )
  }

  /** From the earliest end to the latest: the running in this order, and then the others from the latest end on. */
  function endingSoon(byEnd: Uint32Array, now: number): Uint32Array {
    const { status, end } = columns
    const live = statuses.find('LIVE')
    const isRunning = (slot: number) => status[slot] === live && (end[slot] ?? 0) > now
    const ordered = new Uint32Array(byEnd.length)
    let count = 0
    for (const slot of byEnd) if (isRunning(slot)) ordered[count++] = slot
    for (let last = byEnd.length; last > 0; ) {
      // Those of one end stay in the order of their ids.
      const sameEnd = end[byEnd[last - 1] ?? 0]
      let first = last
      while (first > 0 && end[byEnd[first - 1] ?? 0] === sameEnd) first--
      for (let at = first; at < last; at++) {
        const slot = byEnd[at] ?? 0
        if (!isRunning(slot)) ordered[count++] = slot
      }
      last = first
    }
    return ordered
  }

  return {
    get size() {
      return slots.size
    },

    put(entries) {
      for (const [at, id] of entries.ids.entries()) {
        const slot = slotOf(id)
        columns.status[slot] = statuses.add(entries.statuses[at] ?? '')
        columns.category[slot] = categories.add(entries.categories[at] ?? '')
        columns.launch[slot] = entries.launch_dates[at] ?? noDate
        columns.end[slot] = entries.end_dates[at] ?? noDate
        columns.pledged[slot] = entries.pledged[at] ?? 0
        columns.backers[slot] = entries.backers[at] ?? 0
        columns.updated[slot] = entries.updates[at] ?? 0
        for (const order of allOrders) order.note(slot, true)
      }
    },

    remove(departed) {
      for (const id of departed) {
        const slot = slots.find(id)
        if (slot === undefined) continue
        slots.remove(id)
        ids[slot] = ''
        freeSlots.push(slot)
        byId.note(slot, false)
        for (const order of allOrders) order.note(slot, false)
      }
    },

    async prepare() {
      for (const order of [byId, ...allOrders]) {
        order.slots()
        await nextTurn()
      }
    },

    updatedAt(id) {
      const slot = slots.find(id)
      return slot === undefined ? undefined : columns.updated[slot]
    },

    select(query, now) {
      const found = matching(query)
      const ordered = query.sort === 'ending_soon' ? endingSoon(found, now) : found
      const joined = new Array<string>(ordered.length)
      for (let at = 0; at < ordered.length; at++) joined[at] = ids[ordered[at] ?? 0] ?? ''
      return { joinedIds: joined.join(idSeparator), total: joined.length }
    },
  }
}

interface Columns {
  status: Uint16Array
  category: Uint32Array
  launch: Float64Array
  end: Float64Array
  pledged: Float64Array
  backers: Float64Array
  updated: Float64Array
}

function newColumns(length: number): Columns {
  return {
    status: new Uint16Array(length),
    category: new Uint32Array(length),
    launch: new Float64Array(length),
    end: new Float64Array(length),
    pledged: new Float64Array(length),
    backers: new Float64Array(length),
    updated: new Float64Array(length),
  }
}

function grown(old: Columns, length: number): Columns {
  const columns = newColumns(length)
  for (const name of Object.keys(old) as (keyof Columns)[]) columns[name].set(old[name])
  return columns
}

interface Dictionary {
  add(text: string): number
  /** Null where no campaign ever had this text. */
  find(text: string): number | null
}

function createDictionary(): Dictionary {
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

function isPlain(id: string): boolean {
  return !/[\ud800-\uffff]/.test(id)
}

function compareIds(a: string, b: string, arePlain: boolean): number {
  if (!arePlain) return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return a < b ? -1 : a > b ? 1 : 0
}

/** How many of the first fulfil it, where all that do stand before all that do not. */
function countWhile(slots: Uint32Array, fulfils: (slot: number) => boolean): number {
  let [low, high] = [0, slots.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (fulfils(slots[middle] ?? 0)) low = middle + 1
    else high = middle
  }
  return low
}
