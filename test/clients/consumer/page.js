// A consumer's script for a page, which a bundler builds. The page gives it the job.
import { createClient } from '@pledgeview/client'

const { job, done } = globalThis

async function read() {
  const { data, pagination } = await createClient(job).list({ limit: 10 })
  return { listed: data.map(({ id }) => id), total: pagination.total }
}

read().then(
  seen => done(JSON.stringify(seen)),
  error => done(String(error)),
)
