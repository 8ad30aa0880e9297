/** Plain forms of the portal's ports, for what has no full implementation yet. */
import { issueKey, type KeyAdmin, KeyError, type KeyRecord, revokeKey } from '../shared/api-keys/api-keys.ts'
import { keyPrefix } from '../shared/api-keys/credentials.ts'
import type { LiveStateReader, PortalKey, PortalKeys } from './ports.ts'

/** Keys over the operator's functions: a key stays as it was issued, and a replaced key ends at once. */
export function plainKeys(admin: KeyAdmin): PortalKeys {
  const ofAccount = async (accountId: string) => (await admin.directory.ofAccount(accountId)).map(portalKey)

  async function own(accountId: string, key: string): Promise<PortalKey> {
    const found = (await ofAccount(accountId)).find(
      record => record.key === key || keyPrefix(record.key) === key,
    )
    if (!found) throw new KeyError('There is no such key.')
    return found
  }

  const issue: PortalKeys['issue'] = ({ account_id, name, url, contact_email }) =>
    issueKey(admin, { account: account_id, name, url, email: contact_email })

  return {
    ofAccount,
    issue,
    confirm: async (accountId, key) => void (await own(accountId, key)),
    revoke: async (accountId, key) => portalKey(await revokeKey(admin, (await own(accountId, key)).key)),
    async deleteAll(accountId) {
      const keys = await admin.directory.ofAccount(accountId)
      await admin.writer.append(
        keys.map(({ key }) => ({ topic: 'api-keys', key: Buffer.from(key), value: null })),
      )
    },
    async replace(accountId, key, _overlap, integration) {
      await revokeKey(admin, (await own(accountId, key)).key)
      return issue(integration)
    },
  }
}

function portalKey(record: KeyRecord): PortalKey {
  return { ...record, integration_id: '', confirm_by_ms: null, expires_at_ms: null }
}

/** Says nothing of the data. */
export const unknownLiveState: LiveStateReader = {
  read: async () => ({ status: 'unavailable', campaigns: undefined, as_of: undefined }),
}
