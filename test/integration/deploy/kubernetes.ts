/**
 * Kustomize, from the Go module proxy, and kubernetes-validate, from PyPI, which brings the schemas of the Kubernetes API. Both are kept
 * in node_modules/.cache, and work without a network then. No cluster is needed.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { outputOf, pythonEnvironment } from '../../clients/programs.ts'
import { cacheFolder, fetched, quickBuild, requirementOf, withoutC } from '../../support/runner/programs.ts'
import type { Requirement } from '../../support/runner/requirements.ts'

const kustomizeVersion = 'v5.7.1'
const kustomizeFolder = join(cacheFolder, `kustomize-${kustomizeVersion}`)
const kustomize = join(kustomizeFolder, 'kustomize')
const requirements = fileURLToPath(new URL('requirements.txt', import.meta.url))
const environment = pythonEnvironment('kubernetes-validate', requirements)
const python = environment.program('python')

export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; annotations?: Record<string, string> }
  // biome-ignore lint/suspicious/noExplicitAny: each kind has a form of its own, which the schemas check.
  [field: string]: any
}

/** Installs what is missing. Never rejects: what is missing becomes the reason of the requirement. */
export async function kubernetesTools(): Promise<Requirement> {
  const built = await requirementOf('Kustomize', async () => {
    if (!existsSync(kustomize)) {
      const module = `sigs.k8s.io/kustomize/kustomize/v5@${kustomizeVersion}`
      await fetched('go', ['install', ...quickBuild, module], {
        environment: { ...withoutC, GOBIN: kustomizeFolder },
      })
    }
  })
  return built.isMet ? environment.requirement() : built
}

/** What a folder with a kustomization renders, as YAML, as `kubectl apply -k` would send it. */
export function rendered(folder: string): Promise<string> {
  return outputOf(kustomize, ['build', folder])
}

/** The documents of YAML text, in the YAML version that Kubernetes reads. */
export async function manifestsOf(yaml: string): Promise<Manifest[]> {
  const program =
    'import json, sys, yaml; json.dump([d for d in yaml.safe_load_all(sys.stdin) if d], sys.stdout)'
  return JSON.parse(await outputOf(python, ['-c', program], { stdin: yaml }))
}

/** Checks documents against the schemas of a Kubernetes version, in which no field is unknown. Throws what is wrong. */
export async function validate(manifests: readonly Manifest[], version: string): Promise<void> {
  const program = `
import json, sys, kubernetes_validate
for document in json.load(sys.stdin):
    name = document["kind"] + " " + document["metadata"]["name"]
    try:
        kubernetes_validate.validate(document, sys.argv[1], strict=True)
    except Exception as error:
        sys.exit(name + ": " + "/".join(str(part) for part in getattr(error, "path", [])) + ": " + getattr(error, "message", str(error)))
`
  await outputOf(python, ['-c', program, version], { stdin: JSON.stringify(manifests) })
}
