/** A consumer's program in TypeScript. It is only compiled, in a project that has the package of the client. */
// biome-ignore-all lint/correctness/noUnusedVariables: the types are what is tested
import {
  type Change,
  type Client,
  ClientError,
  type ClientErrorCode,
  type ClientOptions,
  createClient,
  type ListAnswer,
  type MirrorOptions,
  type Project,
  type ProjectDetail,
  type Reward,
  type Stats,
  type WatermarkStore,
} from '@pledgeview/client'

const options: ClientOptions = { baseUrl: 'https://api.example/api/v1', key: 'k', secret: 's' }
const client: Client = createClient({ ...options, runtime: { fetch: globalThis.fetch } })

export async function read(): Promise<[ListAnswer, ProjectDetail, Stats]> {
  const list = await client.list({ status: 'LIVE', sort: 'ending_soon', signal: AbortSignal.timeout(1000) })
  const title: string = list.data[0]?.title ?? ''
  const detail = await client.detail(title)
  const left: number | null | undefined = detail.rewards.map((reward: Reward) => reward.quantity_remaining)[0]
  return [list, detail, await client.stats()]
}

export async function mirror(copy: Map<string, Project>, store: WatermarkStore): Promise<void> {
  const settings: MirrorOptions = { store, reconcile: { everyMs: 86_400_000, held: () => copy.keys() } }
  for await (const change of client.mirror(settings)) apply(copy, change)
}

function apply(copy: Map<string, Project>, change: Change): void {
  if (change.type === 'upsert') copy.set(change.project.id, change.project)
  else copy.delete(change.id)
}

export function codeOf(error: unknown): ClientErrorCode | undefined {
  return error instanceof ClientError ? error.code : undefined
}

// @ts-expect-error: no public campaign is a draft.
void client.list({ status: 'DRAFT' })
// @ts-expect-error: the field has another name.
void client.stats().then(stats => stats.total)
// @ts-expect-error: a removal has no campaign.
export const removed: Change = { type: 'removed', project: {} as Project }
