/**
 * Which rejects of a replay are new. A replay reads what the projectors have read already, so most of its rejects are
 * in the reject topic. If they were stored again, their count and their times would be wrong.
 *
 * Before the projectors' committed positions, a reject is new if the reject topic does not have its place: for example,
 * because a newer rule refuses a record that an older rule accepted. At these positions and after them the projectors
 * store the rejects themselves when they get there. They store rejects before they commit, so none is missed.
 */
import type { Position, Reject } from '../port.ts'
import { placeName } from '../reject-filter.ts'
import { partitionName } from './offsets.ts'
import { type SearchedCluster, walkRejects } from './reject-search.ts'

export interface NewRejectsDependencies {
  cluster: SearchedCluster
  /** The positions that the projectors have committed. */
  livePositions: () => Promise<Position[]>
}

// A replay must know all rejects, so it reads the whole topic. It has more time for this than a person at a terminal.
const readMsMax = 30 * 60_000

/**
 * A function that returns the rejects that are new. It reads the reject topic at the first reject. Throws if the topic
 * cannot be read in time.
 */
export function createNewRejects({
  cluster,
  livePositions,
}: NewRejectsDependencies): (rejects: readonly Reject[]) => Promise<Reject[]> {
  let known: Promise<Known> | undefined

  return async rejects => {
    if (rejects.length === 0) return []
    known ??= readKnown(cluster, livePositions)
    const { next, places } = await known.catch(cause => {
      known = undefined
      throw cause
    })
    const found = rejects.filter(({ record }) => {
      const isOfProjectors = record.offset >= (next.get(partitionName(record)) ?? 0)
      return !isOfProjectors && !places.has(placeName(record))
    })
    // A record may be read again, after a rebalance.
    for (const { record } of found) places.add(placeName(record))
    return found
  }
}

interface Known {
  /** By `partitionName`. */
  next: ReadonlyMap<string, number>
  /** By `placeName`. */
  places: Set<string>
}

async function readKnown(
  cluster: SearchedCluster,
  livePositions: NewRejectsDependencies['livePositions'],
): Promise<Known> {
  // The positions come first. So the topic already has every reject before them.
  const positions = await livePositions()
  const places = new Set<string>()
  const take = async (rejects: readonly Reject[]) => {
    for (const { record } of rejects) places.add(placeName(record))
    return true
  }
  const bounds = { messagesMax: Number.MAX_SAFE_INTEGER, msMax: readMsMax }
  const { cutBy } = await walkRejects(cluster, {}, take, bounds)
  if (cutBy) throw new Error(`the reject topic was not read to its end within ${readMsMax / 60_000} minutes`)
  return { next: new Map(positions.map(position => [partitionName(position), position.next])), places }
}
