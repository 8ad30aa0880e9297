import { createClient } from '../../../../contracts/api/client.ts'

const { PLEDGEVIEW_KEY: key = '', PLEDGEVIEW_SECRET: secret = '' } = process.env
const client = createClient({ baseUrl: 'https://api.example/api/v1', key, secret })

let count = 0
for (let offset = 0; ; offset += 100) {
  const { data, pagination } = await client.list({ category: 'Games', limit: 100, offset })
  count += data.length
  if (!pagination.has_more) break
}
console.log(`${count} campaigns`)
