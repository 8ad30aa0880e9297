/** An announcement goes to the address that an integration has now, and not to the one that its key was made with. */
import { expect, test } from 'vitest'
import { contactsOfKeys } from '../../../../services/portal/notices/contacts.ts'
import { currentContact } from '../../../../services/portal/notices/current-contact.ts'

const keys = [
  { account_id: 'acct', integration_id: 'moved', contact_email: 'old@example.com' },
  { account_id: 'acct', integration_id: 'unknown', contact_email: 'key@example.com' },
  { account_id: 'operators', integration_id: '', contact_email: 'cli@example.com' },
]

test('the contacts of keys are those of their integrations, and of the key where there is none', async () => {
  const data = {
    ...{ account_id: 'acct', integration_id: 'moved', contact_email: 'new@example.com' },
    ...{ name: 'Mirror', url: 'https://mirror.example', created_at: 0, changed_at: 0 },
  }
  const state = { type: 'integration' as const, data }
  const topic = { get: async (key: string) => (key === 'acct/moved' ? state : undefined) }
  const tables = { rows: async () => keys } as unknown as Parameters<typeof contactsOfKeys>[0]
  const databases = { source: 's', model: 'm', views: 'v' } as unknown as Parameters<typeof contactsOfKeys>[1]
  expect(await contactsOfKeys(tables, databases, currentContact(topic))).toEqual({
    addresses: ['cli@example.com', 'key@example.com', 'new@example.com'],
    invalid: 0,
  })
})
