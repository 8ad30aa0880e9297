/** Uses the forms under /access as a person in a browser does. */
import type { Person, TestPortal } from './app.ts'
import { submit } from './browser.ts'

/** Valid fields of an integration's form. */
export const integrationFields = {
  name: 'Backer Board',
  url: 'https://board.example/',
  contact_email: 'ops@board.example',
}

/** The token of the form with this action on the page. */
export function tokenOf(text: string, action: string): string {
  const form = text.slice(text.indexOf(`action="${action}"`))
  return /name="token" value="([^"]*)"/.exec(form)?.[1] ?? ''
}

/** Adds an integration and resolves with its id. */
export async function addIntegration(
  { accounts }: TestPortal,
  { account, browser }: Person,
): Promise<string> {
  await submit(browser, '/access/integrations/new', /^\/access\/integrations$/, integrationFields)
  return (await accounts.integrations(account.account_id))[0]?.integration_id ?? ''
}

/** Creates a key of the integration and resolves with the page that answers. */
export function createKey({ browser }: Person, integrationId: string) {
  return submit(browser, '/access', new RegExp(`/${integrationId}/keys$`))
}
