import Fastify from 'fastify';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allRoutes, version } from '../../src/app.ts';
import { buildOpenApi } from '../../src/surfaces/web/openapi/openapi.ts';
import { referencePage } from '../../src/surfaces/web/reference/reference.ts';

const app = Fastify();
let browser: Browser;
let address: string;

beforeAll(async () => {
  const document = buildOpenApi({ routes: await allRoutes(), version, serverUrl: 'https://postern.example' });
  await app.register(async (scope) => referencePage(() => document)(scope));
  address = await app.listen({ port: 0, host: '127.0.0.1' });
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
});
afterAll(async () => {
  await browser.close();
  await app.close();
});

const screens = [
  { width: 320, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 900, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
] as const;

test.each(screens)(
  'the API reference fits $width pixels in $colorScheme, within its own policy',
  async (screen) => {
    const { width, colorScheme } = screen;
    const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(`${address}/api/v2/docs#rate_limited`);
    // Runs in the page, where `document` is its own.
    const overflow = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    const isStyled = await page.evaluate('getComputedStyle(document.body).margin');
    const isShown = await page.evaluate(
      'document.getElementById("rate_limited").getBoundingClientRect().top < innerHeight',
    );
    await page.close();
    expect({ overflow, isStyled, isShown, complaints }).toEqual({
      overflow: 0,
      isStyled: '0px',
      isShown: true,
      complaints: [],
    });
  },
);
