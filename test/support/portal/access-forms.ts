/** Uses the forms under /access as a person in a browser does. */
import type { PortalKey } from '../../../services/portal/ports.ts'
import type { AccessPortal, Person } from './access.ts'

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
export async function addIntegration(portal: AccessPortal, person: Person): Promise<string> {
  const { text } = await person.browser.get('/access/integrations/new')
  await person.browser.post('/access/integrations', {
    ...integrationFields,
    token: tokenOf(text, '/access/integrations'),
  })
  const [integration] = await portal.accounts.integrations(person.account.account_id)
  return integration?.integration_id ?? ''
}

/** Creates a key of the integration and resolves with the page that answers. */
export async function createKey({ browser }: Person, integrationId: string) {
  const action = `/access/integrations/${integrationId}/keys`
  const { text } = await browser.get('/access')
  return browser.post(action, { token: tokenOf(text, action) })
}

/** The key that was made last. */
export function lastKey({ keys }: AccessPortal): PortalKey {
  const key = keys.all.at(-1)
  if (!key) throw new Error('no key was made')
  return key
}
