import { Modal, Tabs } from '@mantine/core';
import { VersionReport, VersionWarnings } from '../report.tsx';
import type { Site } from '../site-words.ts';
import shared from '../../shell/page.module.css';
import { Changes } from './changes.tsx';

type DialogProps = {
  readonly site: Site;
  /** Undefined: no dialog shows. */
  readonly number: number | undefined;
  readonly onClose: () => void;
};

/** One version: what it changed, and how it differs from the live version. */
export function VersionDialog({ site, number, onClose }: DialogProps) {
  const isLive = number === site.version?.number;
  return (
    <Modal opened={number !== undefined} onClose={onClose} size="lg" title={`Version ${number ?? ''}`}>
      {number !== undefined && (
        <Tabs defaultValue={isLive ? 'report' : 'live'} keepMounted={false}>
          <Tabs.List mb="md">
            {!isLive && <Tabs.Tab value="live">Against the live version</Tabs.Tab>}
            <Tabs.Tab value="report">Its report</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="live">
            <Changes siteId={site.id} number={number} />
          </Tabs.Panel>
          <Tabs.Panel value="report">
            <div className={shared['stack']}>
              <VersionWarnings siteId={site.id} number={number} />
              <VersionReport siteId={site.id} number={number} />
            </div>
          </Tabs.Panel>
        </Tabs>
      )}
    </Modal>
  );
}
