/** Uses the forms under /access as a person in a browser does. */
import type { Person } from './app.ts'
import { type Answer, type Browser, submit } from './browser.ts'
import type { MailServer } from './mail-server.ts'
import { sampleFields } from './memory-ports.ts'

/** The token of the form with this action on the page. */
export function tokenOf(text: string, action: string): string {
  const form = text.slice(text.indexOf(`action="${action}"`))
  return /name="token" value="([^"]*)"/.exec(form)?.[1] ?? ''
}

/** Creates a key and resolves with the page that answers. */
export function createKey({ browser }: Pick<Person, 'browser'>) {
  return submit(browser, '/access/keys/new', /^\/access\/keys$/, { ...sampleFields })
}

/** Signs in with the code of the mail: what one browser has begun, the other ends. */
export async function signIn(
  [first, second]: readonly [Browser, Browser],
  { mails }: MailServer,
  email: string,
  until: (holds: () => boolean) => Promise<unknown>,
): Promise<Answer> {
  await submit(first, '/sign-in', /^\/sign-in$/, { email })
  const mailOf = () => mails.find(({ to }) => to.includes(email))
  await until(() => mailOf() !== undefined)
  const code = /^ {4}(\d{4} \d{4})$/m.exec(mailOf()?.email.text ?? '')?.[1] ?? ''
  return submit(second, '/sign-in/code', /^\/sign-in\/code$/, { code })
}
