/**
 * The watermark that a group remembers: the metadata of its committed offset in the partition of the fold. Each commit there carries
 * it, because a commit replaces the metadata, too. A reader that gets the partition goes on from what it finds there.
 */

import type { RememberedWatermark } from '../../port.ts'
import { topicName } from '../client.ts'
import type { Cluster, TopicPartition } from '../offsets.ts'

/** The reader that holds it leads the fold. */
export const foldPartition = { topic: 'campaigns', partition: 0 } as const satisfies TopicPartition

/** The metadata for what is remembered. */
export function metadataOf({ watermark, shown }: RememberedWatermark): string {
  return `watermark=${watermark} shown=${shown}`
}

/** What a metadata remembers; nothing after a commit by another tool. */
export function watermarkIn(metadata: string | null | undefined): RememberedWatermark {
  const [, watermark = 0, shown = 0] = /^watermark=(\d+) shown=(\d+)$/.exec(metadata ?? '') ?? []
  return { watermark: Number(watermark), shown: Number(shown) }
}

/** What the group remembers. */
export async function readWatermark(
  { admin, names }: Cluster,
  groupId: string,
): Promise<RememberedWatermark> {
  const { topic, partition } = foldPartition
  const [offsets] = await admin.fetchOffsets({ groupId, topics: [topicName(names, topic)] })
  return watermarkIn(offsets?.partitions.find(found => found.partition === partition)?.metadata)
}
