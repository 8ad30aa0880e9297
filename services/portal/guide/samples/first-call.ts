import { ClientError, createClient } from '../../../../contracts/api/client.ts'

const { PLEDGEVIEW_KEY: key = '', PLEDGEVIEW_SECRET: secret = '' } = process.env
const client = createClient({ baseUrl: 'https://api.example/api/v1', key, secret })

try {
  const { data, pagination } = await client.list({ status: 'LIVE', limit: 3 })
  console.log(`${pagination.total} campaigns are live. The newest:`)
  for (const project of data) console.log(project.title, project.url)
} catch (error) {
  process.exitCode = 1
  console.error(error instanceof ClientError ? error.message : error)
}
