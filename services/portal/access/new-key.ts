/**
 * Makes a key once per form, and answers with the page that shows its secret.
 *
 * The key ends by itself unless it is confirmed. It is confirmed by whichever comes first: the page's script says that it is shown, the
 * person says so, or, only for a key that replaces none, the whole page was handed to the kernel. The last one does not prove that
 * the page arrived: behind a proxy, or on a line that breaks at that moment, a key may stay whose secret was not received. That
 * costs one of three places. A replacement ends a key that a program uses, so for it only the reader counts.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { KeyError } from '../../shared/api-keys/api-keys.ts'
import { messageOf } from '../../shared/message-of.ts'
import { csrfField } from '../http/csrf.ts'
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
    return sendSecret(access, request, reply, account, result.value)
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

function sendSecret(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
  account: Account,
  { key, secret, name, replaced }: NewKey,
): FastifyReply {
  if (replaced === undefined) confirmWhenSent(access, reply, account, key)
  const content = secretPage({
    key,
    secret,
    name,
    apiUrl: access.apiUrl,
    replaced,
    csrf: csrfField(request),
  })
  return sendPage(reply, 'Your new key', content)
}

function confirmWhenSent(access: Access, reply: FastifyReply, account: Account, key: string): void {
  // `finish` comes when the last byte was handed to the kernel, and not if the reader hung up before.
  reply.raw.once('finish', () => {
    access.keys.confirm(account.account_id, key).catch((error: unknown) => {
      access.logger.warn(
        { error: messageOf(error) },
        'a new key could not be confirmed after its page was sent',
      )
    })
  })
}

const usedReason =
  'This form was sent before, so nothing was done now. If it created a key whose secret you did not see, revoke that key, or replace it at once: you get a new secret.'
const busyReason =
  'Another key of your account is being made at this moment. Open the page again in a moment.'
const oldReason = 'This form was open for more than a day, so nothing was done. Open the page again.'
