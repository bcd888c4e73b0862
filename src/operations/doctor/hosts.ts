import { randomBytes } from 'node:crypto';
import { advice, failed, type Finding, ok, type Patient, unknown } from './finding.ts';
import { checkRules } from './host-rules.ts';
import { certificateWords } from '../../composition/start-errors.ts';

/** Checks the public addresses: by their rules and, where they can be reached from here, by a request. */
export async function checkHosts({ config, world }: Patient): Promise<Finding[]> {
  return [
    checkRules(config),
    ...checkProxies(config),
    await checkUi(config.uiUrl, world),
    await checkWildcard(config.contentUrl, world),
  ];
}

/** The program speaks no TLS, so an https address means that a proxy is in front of it. */
function checkProxies({ uiUrl, trustedProxies }: Patient['config']): Finding[] {
  if (!uiUrl.startsWith('https:')) return [];
  const check = 'hosts.proxies';
  if (trustedProxies.length > 0)
    return [ok(check, `forwarded headers count from ${trustedProxies.join(', ')}`)];
  return [
    advice(
      check,
      'SERVICE_UI_URL is https, so a proxy is in front, and TRUSTED_PROXIES is empty: every client has the address of the proxy',
      'Set TRUSTED_PROXIES to the addresses of the proxy. Until then all clients share the limits for one address, and the audit log shows no other.',
    ),
  ];
}

async function checkUi(uiUrl: string, world: Patient['world']): Promise<Finding> {
  const check = 'hosts.ui';
  try {
    const { status } = await world.get(`${uiUrl}/api/v2/auth/context`);
    if (status < 500) return ok(check, `${uiUrl} answers`);
    return failed(
      check,
      `${uiUrl} answers ${status}`,
      'Look at the web workload, and at the proxy in front of it.',
    );
  } catch (error) {
    return unknown(check, `${uiUrl} ${notAnswering(reasonOf(error))}`);
  }
}

/** Requests a label that no site has. The gateway responds with 404; without the wildcard there is no response. */
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
        `*.${hostname} leads nowhere, and ${hostname} does`,
        `Add a DNS record for *.${hostname}.`,
      );
    if (below.status === 'rejected')
      return unknown(check, `*.${hostname} is not known to the name service of this machine`);
  }
  try {
    const { status } = await world.get(`${protocol}//${label}.${host}/`);
    if (status < 500) return ok(check, `hosts below ${host} answer`);
    return failed(
      check,
      `hosts below ${host} answer ${status}`,
      'Look at the gateway, and at the proxy in front of it.',
    );
  } catch (error) {
    const reason = reasonOf(error);
    if (!isUntrusted(reason) && /CERT|certificate|altname/i.test(reason))
      return failed(
        check,
        `the certificate is not for *.${hostname} (${reason})`,
        `Get one for *.${hostname}.`,
      );
    return unknown(check, `a host below ${host} ${notAnswering(reason)}`);
  }
}

const isUntrusted = (reason: string) => certificateWords[reason] !== undefined;

/** A browser may trust an authority that Node does not, so the certificate alone does not make the address wrong. */
function notAnswering(reason: string): string {
  return isUntrusted(reason)
    ? `has a certificate that Node does not trust (${reason}); with NODE_EXTRA_CA_CERTS set to its authority, doctor can ask`
    : `does not answer from here (${reason}); with the server stopped, nobody does`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return reasonOf(cause);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
