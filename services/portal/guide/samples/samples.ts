/**
 * The samples of the guide, from the files beside this one. A test runs every one of them against a real service
 * (test/integration/portal/guide/samples.test.ts).
 */
import { readFileSync } from 'node:fs'
import { type Html, html } from '../../html/html.ts'
import { codeBlock } from '../../html/parts.ts'

export const sampleNames = ['first-call', 'mirroring'] as const
export type SampleName = (typeof sampleNames)[number]

export const sampleLanguages = [
  { extension: 'sh', title: 'curl' },
  { extension: 'ts', title: 'TypeScript' },
  { extension: 'py', title: 'Python' },
] as const

/** The address that stands in the files. */
const exampleAddress = 'https://api.example/api/v1'
/** In this repository the samples take the client's source, and readers its package. */
const ownClient = "'../../../../contracts/api/client.ts'"

/** The text of a sample for an API at this address. */
export function sampleText(name: SampleName, extension: string, apiUrl: string): string {
  return readFileSync(new URL(`${name}.${extension}`, import.meta.url), 'utf8')
    .replaceAll(exampleAddress, apiUrl)
    .replaceAll(new URL(exampleAddress).origin, new URL(apiUrl).origin)
    .replaceAll(ownClient, "'@pledgeview/client'")
    .trimEnd()
}

/** A sample in each language, in tabs that need no script. Where scripts run, portal.js remembers the language. */
export function samples(name: SampleName, apiUrl: string): Html {
  return html`<fieldset class="tabs"><legend class="visually-hidden">Language of the sample</legend>
${sampleLanguages.map(
  ({ extension, title }, index) =>
    html`<label><input type="radio" name="${name}" value="${extension}"${index === 0 && html` checked`}>${title}</label>`,
)}
${sampleLanguages.map(({ extension }) =>
  codeBlock({
    id: `${name}-${extension}`,
    caption: `${name}.${extension}`,
    text: sampleText(name, extension, apiUrl),
  }),
)}
</fieldset>`
}
