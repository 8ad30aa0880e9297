/**
 * Builds the package of the client: `npm run client:pack [FOLDER]` writes FOLDER/pledgeview-client.tgz (default: dist).
 *
 * The program itself runs as TypeScript, but Node does not strip types in node_modules. So this package has JavaScript
 * and type declarations, built by tsc from client.ts and the files that it imports. It has no dependencies.
 */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const packageName = '@pledgeview/client'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const fileName = 'pledgeview-client.tgz'
const stepMsMax = 120_000

/** Builds the package into this folder. Returns the path of the tarball. Throws with the output of a failed step. */
export function packClient(folder: string): string {
  const work = mkdtempSync(join(realpathSync(tmpdir()), 'pledgeview-client-'))
  try {
    const content = join(work, 'content')
    build(join(work, 'tsconfig.json'), join(content, 'dist'))
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    writeFileSync(join(content, 'package.json'), `${JSON.stringify(manifest(version), null, 2)}\n`)
    copyFileSync(join(root, 'LICENSE'), join(content, 'LICENSE'))
    for (const name of ['README.md', 'cli.mjs'])
      copyFileSync(new URL(name, import.meta.url), join(content, name))
    run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', work], content)
    const [packed] = globSync('*.tgz', { cwd: work })
    if (packed === undefined) throw new Error(`npm pack wrote no tarball into ${work}`)
    return moveInto(folder, join(work, packed))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function manifest(version: string): object {
  const [types, main] = ['./dist/api/client.d.ts', './dist/api/client.js']
  return {
    name: packageName,
    version,
    description: 'Reads the public campaigns of a Pledgeview API, and keeps a copy of them up to date.',
    license: 'Apache-2.0',
    keywords: ['crowdfunding', 'campaigns', 'api', 'client', 'mirror'],
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    bin: { 'pledgeview-client': 'cli.mjs' },
    exports: { '.': { types, default: main }, './package.json': './package.json' },
    // For tools that do not read `exports`.
    main,
    types,
  }
}

function build(configFile: string, outDir: string): void {
  const { compilerOptions: checks } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'))
  const compilerOptions = {
    ...checks,
    noEmit: false,
    target: 'es2022',
    // What Node 20 and browsers have: a newer function would not compile.
    lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    declaration: true,
    allowImportingTsExtensions: false,
    rewriteRelativeImportExtensions: true,
    rootDir: join(root, 'contracts'),
    outDir,
  }
  const files = [join(root, 'contracts/api/client.ts')]
  writeFileSync(configFile, JSON.stringify({ compilerOptions, files }))
  // The launcher of the installed compiler, whatever is on the path.
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
  run(process.execPath, [tsc, '--project', configFile], root)
  // Only its types are used.
  rmSync(join(outDir, 'tables/campaign-columns.js'))
  for (const name of globSync('**/*.d.ts', { cwd: outDir })) {
    const file = join(outDir, name)
    // tsc rewrites the addresses in JavaScript only.
    writeFileSync(file, readFileSync(file, 'utf8').replace(/(['"]\.{1,2}\/[^'"]*)\.ts(['"])/g, '$1.js$2'))
  }
}

/** The tarball appears whole: another process may be reading or writing the same one. */
function moveInto(folder: string, packed: string): string {
  mkdirSync(folder, { recursive: true })
  const target = join(folder, fileName)
  const part = join(folder, `.${basename(packed)}.${process.pid}`)
  copyFileSync(packed, part)
  renameSync(part, target)
  return target
}

function run(program: string, args: readonly string[], cwd: string): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    timeout: stepMsMax,
    encoding: 'utf8',
  })
  if (status === 0) return
  throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${error ?? ''}${stdout}${stderr}`)
}

if (import.meta.main) {
  process.stdout.write(`${packClient(resolve(process.argv[2] ?? 'dist'))}\n`)
}
