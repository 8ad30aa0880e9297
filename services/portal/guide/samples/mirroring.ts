import { readFile, rename, writeFile } from 'node:fs/promises'
import { ClientError, createClient, type Project } from '../../../../contracts/api/client.ts'

const { PLEDGEVIEW_KEY: key = '', PLEDGEVIEW_SECRET: secret = '' } = process.env
const client = createClient({ baseUrl: 'https://api.example/api/v1', key, secret })

// The copy and its watermark are in one file, so they always fit together. Yours may be in a database.
const file = 'campaigns.json'
const kept: { asOf: string | null; campaigns: Project[] } = await readFile(file, 'utf8')
  .catch(() => '{"asOf": null, "campaigns": []}')
  .then(text => JSON.parse(text))
const copy = new Map(kept.campaigns.map(campaign => [campaign.id, campaign]))

const store = {
  load: () => kept.asOf,
  async save(asOf: string) {
    await writeFile(`${file}.new`, JSON.stringify({ asOf, campaigns: [...copy.values()] }))
    await rename(`${file}.new`, file)
    console.log(`${copy.size} campaigns, as of ${asOf}`)
  },
}

// `from`: to start with the latest whole copy, if the API offers one. `reconcile`: to compare with all campaigns, if the copy is so old that the API no longer tells which are gone.
const reconcile = { held: () => copy.keys() }
const from = () => client.wholeCopy()
try {
  for await (const change of client.mirror({ store, from, reconcile, onOutage: console.warn })) {
    if (change.type === 'upsert') copy.set(change.project.id, change.project)
    else copy.delete(change.id)
  }
} catch (error) {
  process.exitCode = 1
  console.error(error instanceof ClientError ? error.message : error)
}
