/**
 * The samples of the guide, from the files beside this one. A test runs every one of them against a real service
 * (test/integration/portal/guide/samples.test.ts).
 */
import { existsSync, readFileSync } from 'node:fs'
import { type Html, html } from '../../html/html.ts'
import { codeBlock } from '../../html/parts.ts'

export type SampleName = 'first-call' | 'mirroring'

const languages = [
  { extension: 'sh', title: 'curl' },
  { extension: 'ts', title: 'TypeScript' },
  { extension: 'py', title: 'Python' },
]

/** The address that stands in the files. */
const exampleAddress = 'https://api.example/api/v1'
/** In this repository the samples take the client's source, and readers its package. */
const ownClient = "'../../../../contracts/api/client.ts'"

/** The languages that have this sample. */
export function sampleLanguages(name: SampleName): typeof languages {
  return languages.filter(({ extension }) => existsSync(fileOf(name, extension)))
}

/** The text of a sample for an API at this address. */
export function sampleText(name: SampleName, extension: string, apiUrl: string): string {
  return readFileSync(fileOf(name, extension), 'utf8')
    .replaceAll(exampleAddress, apiUrl)
    .replaceAll(ownClient, "'@pledgeview/client'")
    .trimEnd()
}

/** A sample in each of its languages, in tabs that need no script. Where scripts run, portal.js remembers the language. */
export function samples(name: SampleName, apiUrl: string): Html {
  return html`<fieldset class="tabs"><legend class="visually-hidden">Language of the sample</legend>
${sampleLanguages(name).map(
  ({ extension, title }, index) =>
    html`<label><input type="radio" name="${name}" value="${extension}"${index === 0 && html` checked`}>${title}</label>`,
)}
${sampleLanguages(name).map(({ extension }) =>
  codeBlock({
    id: `${name}-${extension}`,
    caption: `${name}.${extension}`,
    text: sampleText(name, extension, apiUrl),
  }),
)}
</fieldset>`
}

function fileOf(name: SampleName, extension: string): URL {
  return new URL(`${name}.${extension}`, import.meta.url)
}
