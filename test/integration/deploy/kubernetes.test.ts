/** The Kubernetes manifests: Kustomize renders them, each document fits the API's schemas, and each promise of the guide is in them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeMsMax } from '../../../services/commands/services.ts'
import { serverOptions } from '../../../services/portal/http/server-options.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { needs, type Requirement } from '../../support/runner/requirements.ts'
import { kubernetesTools, type Manifest, manifestsOf, rendered, validate } from './kubernetes.ts'

const root = fileURLToPath(new URL('../../../deploy/kubernetes/', import.meta.url))
const dockerfile = readFileSync(new URL('../../../deploy/Dockerfile', import.meta.url), 'utf8')
const compose = readFileSync(new URL('../../../docker-compose.yml', import.meta.url), 'utf8')
const guide = readFileSync(new URL('../../../deploy/deploy.md', import.meta.url), 'utf8')
const folders = ['migrate', 'services', 'example/migrate', 'example/services']
// The oldest and the newest that the guide names.
const versions = ['1.27', '1.37']

describe('as Kustomize renders them', () => {
  let requirement: Requirement
  const manifests = new Map<string, Manifest[]>()

  beforeAll(async () => {
    requirement = await kubernetesTools()
    if (!requirement.isMet) return
    for (const folder of folders) manifests.set(folder, await manifestsOf(await rendered(join(root, folder))))
  }, 500_000)
  beforeEach(context => needs(context, requirement))

  const of = (folder: string): Manifest[] => manifests.get(folder) ?? []
  const kindIn = (folder: string, kind: string) => of(folder).filter(manifest => manifest.kind === kind)
  const workloads = () => [...kindIn('services', 'Deployment'), ...kindIn('migrate', 'Job')]
  const podOf = (workload: Manifest) => workload.spec.template.spec

  test.each(versions)('every document fits the schemas of Kubernetes %s', async version => {
    for (const folder of folders) expect(of(folder).length).toBeGreaterThan(3)
    await validate(folders.flatMap(of), version)
    const typo = structuredClone(kindIn('services', 'Deployment')[0] as Manifest)
    podOf(typo).containers[0].readinesProbe = {}
    await expect(validate([typo], version)).rejects.toThrow("'readinesProbe' was unexpected")
  })

  test('every file is part of what is rendered, and every image is the one of the compose file', () => {
    const names = workloads().map(({ metadata }) => metadata.name)
    expect(names.toSorted()).toEqual([
      ...['pledgeview-migrate', 'pledgeview-portal', 'pledgeview-projector', 'pledgeview-query'],
    ])
    const [, image] = /image: (pledgeview:\S+)/.exec(compose) ?? []
    for (const workload of workloads()) expect(podOf(workload).containers[0].image).toBe(image)
  })

  test('the example puts everything into its namespace, with one version for the job and the services', () => {
    const all = [...of('example/migrate'), ...of('example/services')]
    for (const { metadata } of all) expect(metadata.namespace, metadata.name).toBe('pledgeview')
    const images = all
      .filter(({ spec }) => spec?.template)
      .map(workload => podOf(workload).containers[0].image)
    expect(images).toHaveLength(4)
    expect(new Set(images).size).toBe(1)
  })

  test('no pod is more than it needs to be', () => {
    for (const workload of workloads()) {
      const { containers, securityContext, ...pod } = podOf(workload)
      expect(pod).toMatchObject({ automountServiceAccountToken: false, serviceAccountName: 'pledgeview' })
      // Otherwise a Service becomes a variable like PLEDGEVIEW_QUERY_SERVICE_HOST, which a start refuses.
      expect(pod.enableServiceLinks).toBe(false)
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(securityContext.runAsUser).toBeGreaterThan(0)
      expect(`USER ${securityContext.runAsUser}:${securityContext.runAsGroup}`).toBe(
        /^USER .*$/m.exec(dockerfile)?.[0],
      )
      expect(containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(containers[0].resources).toMatchObject({
        requests: { cpu: expect.anything() },
        limits: { memory: expect.anything() },
      })
    }
  })

  test('a process has the time to end by itself before it is killed', () => {
    for (const workload of kindIn('services', 'Deployment')) {
      const { terminationGracePeriodSeconds, containers } = podOf(workload)
      const [, seconds = 0] = containers[0].lifecycle?.preStop.exec.command ?? []
      expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThan(Number(seconds) * 1_000 + closeMsMax)
      // A service with clients first gets no new requests.
      expect(Number(seconds) > 0).toBe(containers[0].ports.length > 1)
    }
  })

  test('a rollout waits a day for a projector that reads a backlog', () => {
    const services = kindIn('services', 'Deployment')
    const projector = services.find(({ metadata }) => metadata.name === 'pledgeview-projector')
    expect(projector?.spec.progressDeadlineSeconds).toBe(86_400)
  })

  test('each service has probes on its ops port, a budget, and, if it has clients, a Service at an open port', () => {
    const names = (kind: string) => kindIn('services', kind).map(({ spec }) => labelOf(spec))
    for (const workload of kindIn('services', 'Deployment')) {
      const [{ ports, livenessProbe, readinessProbe, startupProbe }] = podOf(workload).containers
      expect(livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'ops' })
      expect(startupProbe.httpGet).toEqual({ path: '/healthz', port: 'ops' })
      expect(readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'ops' })
      expect(ports.find(({ name }: { name: string }) => name === 'ops').containerPort).toBe(9090)
      expect(names('PodDisruptionBudget')).toContain(workload.metadata.name)
      if (ports.length === 1) continue
      const service = kindIn('services', 'Service').find(
        ({ spec }) => labelOf(spec) === workload.metadata.name,
      )
      expect(service?.spec.ports[0].targetPort).toBe(ports[0].name)
    }
  })

  test('what the settings name is accepted, and each secret comes from a file that is mounted for it', () => {
    const secrets = mkdtempSync(join(tmpdir(), 'pledgeview-manifests-'))
    afterAll(() => rmSync(secrets, { recursive: true }))
    for (const folder of folders) {
      const [{ data }] = kindIn(folder, 'ConfigMap') as [Manifest]
      for (const workload of of(folder).filter(({ spec }) => spec?.template)) {
        const { containers, volumes } = podOf(workload)
        const [{ mountPath }] = containers[0].volumeMounts
        const { items, defaultMode } = volumes[0].secret
        expect(defaultMode).toBe(0o440)
        for (const { path } of items) {
          writeFileSync(
            join(secrets, path),
            path === 'redis-url' ? 'redis://redis:6379\n' : `${'ab'.repeat(32)}\n`,
          )
        }
        const { PLEDGEVIEW_CLICKHOUSE_USER: _user, ...files } = ownSettings(workload)
        const named = Object.entries(files)
        expect(named.map(([, value]: string[]) => value)).toEqual(
          items.map(({ path }: { path: string }) => `${mountPath}/${path}`),
        )
        const settings = named.map(([name, value]: string[]) => [name, value?.replace(mountPath, secrets)])
        expect(() => readConfig({ ...data, ...Object.fromEntries(settings) })).not.toThrow()
      }
    }
  })

  test('what faces the public has a user of ClickHouse of its own, with its role and a password that nothing else gets', () => {
    const services = kindIn('services', 'Deployment')
    for (const role of ['query', 'portal']) {
      const name = `pledgeview-${role}`
      const user = `pledgeview_${role}_service`
      const secret = `clickhouse-${role}-password`
      const workload = services.find(({ metadata }) => metadata.name === name) as Manifest
      expect(ownSettings(workload)).toMatchObject({
        PLEDGEVIEW_CLICKHOUSE_USER: user,
        PLEDGEVIEW_CLICKHOUSE_PASSWORD_FILE: expect.stringContaining(`/${secret}`),
      })
      const mounting = workloads().filter(one => JSON.stringify(podOf(one).volumes).includes(`"${secret}"`))
      expect(mounting).toEqual([workload])
      expect(JSON.stringify(podOf(workload).volumes)).not.toContain('"clickhouse-password"')
      expect(guide).toContain(`CREATE USER ${user} IDENTIFIED`)
      expect(guide).toContain(`GRANT pledgeview_${role} TO ${user};`)
    }
  })

  test('the example’s ingress waits for the portal for longer than the portal lets a connection be silent', () => {
    const [ingress] = kindIn('example/services', 'Ingress') as [Manifest]
    const seconds = Number(ingress.metadata.annotations?.['nginx.ingress.kubernetes.io/proxy-read-timeout'])
    expect(seconds * 1_000).toBeGreaterThan(serverOptions.connectionTimeout ?? Infinity)
  })

  test('only Prometheus reaches the ops ports, and only the ingress controller reaches what is public', () => {
    const policies = kindIn('services', 'NetworkPolicy')
    const openTo = policies.flatMap(({ spec }) => spec.ingress ?? [])
    const rules = openTo.map(
      ({ from, ports }: { from: { namespaceSelector: object }[]; ports: { port: number }[] }) => [
        from.flatMap(({ namespaceSelector }) => Object.values(namespaceSelector).flatMap(Object.values)),
        ports.map(({ port }) => port),
      ],
    )
    expect(rules.toSorted()).toEqual([
      [['ingress-nginx'], [8080, 8081]],
      [['monitoring'], [9090]],
    ])
    for (const { spec } of policies)
      expect(spec.ingress === undefined).toBe(!spec.policyTypes.includes('Ingress'))
  })
})

/** What the container has beside the ConfigMap. */
function ownSettings(workload: Manifest): Record<string, string> {
  const { env } = workload.spec.template.spec.containers[0]
  return Object.fromEntries(env.map(({ name, value }: { name: string; value: string }) => [name, value]))
}

function labelOf(spec: Manifest['spec']): string {
  return (spec.selector.matchLabels ?? spec.selector)['app.kubernetes.io/name']
}
