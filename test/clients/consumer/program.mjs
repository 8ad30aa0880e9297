// A consumer's program in plain JavaScript, in a project of its own. It prints what it saw as JSON.
import { ClientError, createClient } from '@pledgeview/client'

const { baseUrl, key, secret, slug } = JSON.parse(process.env.JOB)
const client = createClient({ baseUrl, key, secret })

const mirrored = []
const saved = []
const controller = new AbortController()
const store = {
  load: () => null,
  save(watermark) {
    saved.push(watermark)
    // The first walk has ended.
    controller.abort(new Error('enough'))
  },
}
try {
  for await (const change of client.mirror({ store, pageSize: 10, signal: controller.signal })) {
    mirrored.push(change.project.id)
  }
} catch (error) {
  if (error.message !== 'enough') throw error
}
const list = await client.list({ limit: 10 })
const unknown = await client.detail('no-such-slug').catch(error => error)
process.stdout.write(
  JSON.stringify({
    node: process.versions.node,
    mirrored,
    saved: saved.length,
    listed: list.data.map(({ id }) => id),
    total: list.pagination.total,
    detail: await client.detail(slug),
    stats: await client.stats(),
    unknown: { isClientError: unknown instanceof ClientError, code: unknown.code },
  }),
)
