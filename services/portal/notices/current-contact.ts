/** The contact address of a key: the one that its integration has now. A key itself keeps the address of the day it was made. */
import type { StateTopic } from '../../shared/event-log/state-topic.ts'
import { integrationKey } from '../accounts/accounts.ts'

/** A key as the tables have it. `integration_id` is empty if the key was not made in the portal. */
export interface KeyContact {
  account_id: string
  integration_id: string
  contact_email: string
}

export type ContactOf = (key: KeyContact) => Promise<string>

/** Looks in the topic `accounts`. A key without an integration there keeps its own address. */
export function currentContact(topic: Pick<StateTopic<'accounts'>, 'get'>): ContactOf {
  return async key => {
    if (key.integration_id === '') return key.contact_email
    const state = await topic.get(integrationKey(key))
    return state?.type === 'integration' ? state.data.contact_email : key.contact_email
  }
}
