/** Uses the forms under /access as a person in a browser does. */
import type { Person } from './app.ts'
import { submit } from './browser.ts'
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
