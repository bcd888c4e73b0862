import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { systemAuditContext } from '../../src/core/caller.ts';
import type { Person } from '../harness.ts';
import { visit } from './app-pages.ts';
import { signIn, type World } from './real-ports.ts';

/** What the suites of the Sites pages do: folders on the disk, chosen and dropped as people do it. */
export type Folders = {
  /** A folder with these files, as its path. Written again it holds these and no others. */
  make(name: string, files: Readonly<Record<string, string | Buffer>>): Promise<string>;
  remove(): Promise<void>;
};

export async function openFolders(): Promise<Folders> {
  const top = await mkdtemp(join(tmpdir(), 'postern-folders-'));
  return {
    async make(name, files) {
      const folder = join(top, name);
      await rm(folder, { recursive: true, force: true });
      for (const [path, content] of Object.entries(files)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), content);
      }
      return folder;
    },
    remove: () => rm(top, { recursive: true, force: true }),
  };
}

export type Look = { colorScheme?: 'light' | 'dark'; width?: number };

/** A page of the web app in a separate browser, signed in as this person. */
export async function atPage(world: World, person: Person, path: string, look: Look = {}) {
  const { colorScheme = 'light', width = 1280 } = look;
  const viewport = { width, height: 800 };
  const context = await world.browser.newContext({ colorScheme, viewport, reducedMotion: 'reduce' });
  const entrance = await context.newPage();
  await signIn(entrance, person, world.uiUrl);
  await entrance.close();
  const { page, complaints } = await visit(context);
  await page.goto(`${world.uiUrl}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return {
    context,
    page,
    /** Without what the browser notes of every answer that refuses; the page shows those itself. */
    complaints: () => complaints.filter((text) => !text.startsWith('Failed to load resource')),
  };
}

export async function chooseFolder(page: Page, folder: string): Promise<void> {
  await page.getByLabel('Folder to publish').setInputFiles(folder);
}

export async function chooseFile(page: Page, file: { name: string; mimeType: string; buffer: Buffer }) {
  await page.getByLabel('File to publish').setInputFiles(file);
}

/** From the desktop onto the page, as the browser hears of it. */
export async function drop(page: Page, ...paths: string[]): Promise<void> {
  const desktop = await page.context().newCDPSession(page);
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  const at = { x: 400, y: 400, data };
  // A page that has just come does not know yet whether this person may publish; who drags comes in once more.
  await expect
    .poll(async () => {
      await desktop.send('Input.dispatchDragEvent', { type: 'dragEnter', ...at });
      await desktop.send('Input.dispatchDragEvent', { type: 'dragOver', ...at });
      return await page.getByText(/^Drop it to/).isVisible();
    })
    .toBe(true);
  await desktop.send('Input.dispatchDragEvent', { type: 'drop', ...at });
  await desktop.detach();
}

export const publish = (page: Page) =>
  page.getByRole('button', { name: /^Publish( this version)?$/ }).click();

/** The address or link on the card that shows how an upload ended. */
export async function addressShown(page: Page): Promise<string> {
  await page.getByRole('heading', { name: 'is live' }).waitFor();
  return await page.getByLabel(/^(Address|Link)$/).inputValue();
}

/** Something that does not get smaller by being packed. */
export const noise = (bytes: number) => randomBytes(bytes);

export const html = (text: string) => `<!doctype html><title>${text}</title><p>${text}</p>`;

/** Makes Postern refuse uploads with files of these extensions. */
export async function forbidExtensions({ h }: World, forbiddenExtensions: string[]): Promise<void> {
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  await sitesConfig.put(systemAuditContext, etag, {
    ...value,
    upload: { ...value.upload, forbiddenExtensions },
  });
}
