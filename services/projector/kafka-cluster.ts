/**
 * Whether the positions of the consumer group are of the Kafka cluster that the tables know.
 *
 * A mirror gives records other offsets, because a compacted topic has gaps that the copy does not have. Many mirrors copy the
 * positions of consumer groups, too. In a restored cluster these say nothing about restored tables, and the look at the tables' own
 * positions (recorded-positions.ts) cannot help: those are offsets of the lost cluster, and higher ones. The events that the
 * tables lack would be skipped, and deletions among them would be undone.
 *
 * So each run notes for which cluster its group reads into these tables, before it reads anything. A group that has positions in another
 * cluster than it noted last is refused, also if it noted none and the tables know another one. A group without positions reads all.
 */
import type { KafkaPlace } from '../shared/event-log/kafka/inspector.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { writeNote } from './projector-log.ts'

/** The group's positions are not of the cluster that filled the tables. The message says how to go on. */
export class OtherCluster extends Error {
  override name = 'OtherCluster'
}

/** `run` names this run. Throws `OtherCluster` before it notes anything, or `TablesError`. */
export async function holdCluster(
  tables: Pick<Tables, 'rows' | 'insert'>,
  databases: Databases,
  run: string,
  place: KafkaPlace & { group: string },
): Promise<void> {
  const { group, cluster, hasPositions } = place
  // Without an id nothing can be told apart.
  if (cluster === null) return
  const fault = clusterFault({ group, cluster, hasPositions }, await readClusters(tables, databases))
  if (fault) throw new OtherCluster(fault)
  await writeNote(tables, databases, run, { kind: 'cluster', detail: { cluster, group } })
}

/** From which clusters the tables were filled, and by which groups. */
export interface NotedCluster {
  cluster: string
  group: string
}

/** Why the positions of the group must not be used, or `undefined`. `noted`: the latest last. Pure. */
export function clusterFault(
  { group, cluster, hasPositions }: NotedCluster & Pick<KafkaPlace, 'hasPositions'>,
  noted: readonly NotedCluster[],
): string | undefined {
  // Only where it read last: on the way back to an earlier cluster, a mirror may have copied positions there meanwhile.
  const isKnown = noted.findLast(one => one.group === group)?.cluster === cluster
  const others = [...new Set(noted.map(one => one.cluster))].filter(other => other !== cluster)
  if (!hasPositions || isKnown || others.length === 0) return undefined
  return (
    `the group ${group} has positions in the Kafka cluster ${cluster}, but it never filled these tables from there. They were ` +
    `filled from ${others.join(', ')}, and positions that were copied to another cluster may skip events. Give the projectors a ` +
    'consumer group that has never been used (PLEDGEVIEW_KAFKA_GROUP): it reads the log from its start, which is always safe'
  )
}

async function readClusters(tables: Pick<Tables, 'rows'>, { model }: Databases): Promise<NotedCluster[]> {
  return tables.rows<NotedCluster & Record<string, unknown>>({
    query: `SELECT JSONExtractString(detail, 'cluster') AS cluster, JSONExtractString(detail, 'group') AS \`group\`
            FROM ${model}.projector_log WHERE kind = 'cluster'
            GROUP BY cluster, \`group\` ORDER BY max(noted_at)`,
  })
}
