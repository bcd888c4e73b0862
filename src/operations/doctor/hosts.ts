import { randomBytes } from 'node:crypto';
import { advice, failed, type Finding, ok, type Patient, unknown } from './finding.ts';
import { checkRules, kindsOfContent } from './host-rules.ts';
import { certificateWords } from '../../composition/backends/start-errors.ts';

/** Checks the public addresses: by their rules and, where they can be reached from here, by a request. */
export async function checkHosts({ config, world }: Patient): Promise<Finding[]> {
  const kinds = kindsOfContent(config);
  return [
    ...kinds.map((kind) => checkRules(config, kind)),
    ...checkProxies(config),
    await checkUi(config.uiUrl, world),
    ...(await Promise.all(kinds.map((kind) => checkWildcard(config[kind.contentUrl], world)))),
  ];
}

/** The program speaks no TLS, so an https address means that a proxy is in front of it. */
function checkProxies({ uiUrl, trustedProxies }: Patient['config']): Finding[] {
  if (!uiUrl.startsWith('https:')) return [];
  const check = 'hosts.proxies';
  if (trustedProxies.length > 0)
    return [ok(check, `forwarded headers are trusted from ${trustedProxies.join(', ')}`)];
  return [
    advice(
      check,
      'SERVICE_UI_URL is https, so there is a proxy, and TRUSTED_PROXIES is empty: every client appears with the address of the proxy',
      'Set TRUSTED_PROXIES to the addresses of the proxy. Until then, all clients share the limits for one address, and the audit log records only that address.',
    ),
  ];
}

async function checkUi(uiUrl: string, world: Patient['world']): Promise<Finding> {
  const check = 'hosts.ui';
  try {
    const { status } = await world.get(`${uiUrl}/api/v2/auth/context`);
    if (status < 500) return ok(check, `${uiUrl} responds`);
    return failed(
      check,
      `${uiUrl} responds with ${status}`,
      'Check the web workload, and the proxy in front of it.',
    );
  } catch (error) {
    return unknown(check, `${uiUrl} ${unreachable(reasonOf(error))}`);
  }
}

/** Requests a label that nothing has. The gateway responds with 404; without the wildcard there is no response. */
async function checkWildcard(contentUrl: string, world: Patient['world']): Promise<Finding> {
  const check = 'hosts.wildcard';
  const { protocol, hostname, host } = new URL(contentUrl);
  const label = `doctor-${randomBytes(8).toString('hex')}`;
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost');
  if (!isLocal) {
    const [base, below] = await Promise.allSettled([
      world.lookUp(hostname),
      world.lookUp(`${label}.${hostname}`),
    ]);
    if (below.status === 'rejected' && base.status === 'fulfilled')
      return failed(
        check,
        `the DNS has a record for ${hostname}, but none for *.${hostname}`,
        `Add a DNS record for *.${hostname}.`,
      );
    if (below.status === 'rejected') return unknown(check, `this machine cannot resolve *.${hostname}`);
  }
  try {
    const { status } = await world.get(`${protocol}//${label}.${host}/`);
    if (status < 500) return ok(check, `hosts below ${host} respond`);
    return failed(
      check,
      `hosts below ${host} respond with ${status}`,
      'Check the gateway, and the proxy in front of it.',
    );
  } catch (error) {
    const reason = reasonOf(error);
    if (!isUntrusted(reason) && /CERT|certificate|altname/i.test(reason))
      return failed(
        check,
        `the certificate does not cover *.${hostname} (${reason})`,
        `Install a certificate for *.${hostname}.`,
      );
    return unknown(check, `a host below ${host} ${unreachable(reason)}`);
  }
}

const isUntrusted = (reason: string) => certificateWords[reason] !== undefined;

/** A browser may trust an authority that Node does not, so the certificate alone does not make the address wrong. */
function unreachable(reason: string): string {
  return isUntrusted(reason)
    ? `has a certificate that Node does not trust (${reason}); to check it, set NODE_EXTRA_CA_CERTS to the certificate of its authority`
    : `does not respond to this machine (${reason}); this is normal while the server is stopped`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return reasonOf(cause);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
