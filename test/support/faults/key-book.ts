/** The API keys of a suite: the events of each key, and which keys are active after them. */
import { randomBytes } from 'node:crypto'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import {
  type Credentials,
  generateApiKey,
  generateSecret,
  hashSecret,
} from '../../../services/api-keys/credentials.ts'
import { apiKeyEvent } from '../events/sample-events.ts'

interface Entry {
  account: string
  credentials: Credentials
  issuedAt: number
  isRevoked: boolean
}

const activeMax = 3

export function createKeyBook(pepper: string) {
  const entries: Entry[] = []

  function eventOf({ account, credentials, issuedAt, isRevoked }: Entry): ChangeEvent {
    return apiKeyEvent({
      key: credentials.key,
      account_id: account,
      secret_hash: hashSecret(pepper, credentials.secret),
      version: isRevoked ? 2 : 1,
      status: isRevoked ? 'REVOKED' : 'ACTIVE',
      issued_at: issuedAt,
    })
  }

  return {
    /** A new key of the account, and its event. */
    issue(account: string): { credentials: Credentials; event: ChangeEvent } {
      const credentials = { key: generateApiKey(randomBytes), secret: generateSecret(randomBytes) }
      // Each key is a second younger than the one before, so that it is certain which are the oldest.
      const issuedAt = Date.UTC(2026, 0, 1) + entries.length * 1_000
      const entry = { account, credentials, issuedAt, isRevoked: false }
      entries.push(entry)
      return { credentials, event: eventOf(entry) }
    },

    revoke(key: string): ChangeEvent {
      const entry = entries.find(({ credentials }) => credentials.key === key)
      if (!entry) throw new Error('there is no such key')
      entry.isRevoked = true
      return eventOf(entry)
    },

    /** The keys that should be active now, sorted. */
    active(): string[] {
      const byAccount = Map.groupBy(
        entries.filter(({ isRevoked }) => !isRevoked),
        ({ account }) => account,
      )
      const oldest = [...byAccount.values()].flatMap(keys => keys.slice(0, activeMax))
      return oldest.map(({ credentials }) => credentials.key).toSorted()
    },
  }
}
