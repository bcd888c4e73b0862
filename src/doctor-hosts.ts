import { randomBytes } from 'node:crypto';
import { failed, type Finding, ok, type Patient, unknown } from './doctor-finding.ts';
import { checkRules } from './host-rules.ts';

/** The addresses people come to, by their rules and, where they can be reached from here, by asking. */
export async function checkHosts({ config, world }: Patient): Promise<Finding[]> {
  return [
    checkRules(config),
    await checkUi(config.uiUrl, world),
    await checkWildcard(config.contentUrl, world),
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
    return unknown(
      check,
      `${uiUrl} does not answer from here (${reasonOf(error)}); with the server stopped, nobody does`,
    );
  }
}

/** A label that no site has: the gateway answers it with 404, and a wildcard that is missing not at all. */
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
    if (/CERT|certificate|altname/i.test(reason))
      return failed(
        check,
        `the certificate is not for *.${hostname} (${reason})`,
        `Get one for *.${hostname}.`,
      );
    return unknown(
      check,
      `hosts below ${host} do not answer from here (${reason}); with the server stopped, nobody does`,
    );
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return reasonOf(cause);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
