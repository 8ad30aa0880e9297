/**
 * Makes a key once per form, and answers with the page that shows its secret. If the page does not arrive, the secret is lost:
 * the person finds the key in the overview, and replaces it.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { KeyError } from '../../shared/api-keys/api-keys.ts'
import type { Account } from '../ports.ts'
import { type Access, reasonOf, sendPage, sendProblem, signedIn } from './access.ts'
import { textField } from './integration-form.ts'
import { secretPage } from './secret-page.ts'

export interface NewKey {
  key: string
  secret: string
  /** The name of its integration. */
  name: string
  /** What became of the key that it replaces. */
  replaced?: string
}

/** Runs `make` unless this form was used before, and answers with the key. `whatFailed` is the title if there is a reason against it. */
export async function answerWithNewKey(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
  whatFailed: string,
  make: () => Promise<NewKey>,
): Promise<FastifyReply> {
  const account = signedIn(request)
  await access.countNewKey(account)
  try {
    const result = await access.tokens.once(account.account_id, textField(request.body, 'token'), () =>
      oneAtATime(access, account, async () => {
        await access.countMadeKey(account)
        return make()
      }),
    )
    if (result.outcome === 'used') return sendProblem(reply, whatFailed, usedReason)
    if (result.outcome === 'too old') return sendProblem(reply, whatFailed, oldReason)
    return sendPage(reply, 'Your new key', secretPage({ ...result.value, apiUrl: access.apiUrl }))
  } catch (error) {
    const reason = reasonOf(error)
    if (reason === undefined) throw error
    return sendProblem(reply, whatFailed, reason)
  }
}

/** Making a key takes seconds. A second form of the account does not wait in line, but hears so. */
async function oneAtATime<T>(
  { makingKeys }: Access,
  { account_id }: Account,
  make: () => Promise<T>,
): Promise<T> {
  if (makingKeys.has(account_id)) throw new KeyError(busyReason)
  makingKeys.add(account_id)
  try {
    return await make()
  } finally {
    makingKeys.delete(account_id)
  }
}

const usedReason =
  'This form was sent before, so nothing was done now. If it created a key whose secret you did not see, revoke that key, or replace it at once: you get a new secret.'
const busyReason =
  'Another key of your account is being made at this moment. Open the page again in a moment.'
const oldReason = 'This form was open for more than a day, so nothing was done. Open the page again.'
