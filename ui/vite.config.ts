import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/**
 * The areas of the app, each one chunk with all its pages. An area may import from those before it, whose chunks then do not
 * contain its modules. Without groups a page of a list loads about thirty chunks, most of them under 3 KB.
 */
const areas = ['keys', 'environments', 'sites', 'agents', 'settings', 'administration'];

/** What pages of several areas share: components of the libraries, lists, and the parts of the shell that pages use. */
const common = 'common';

// Content-hashed files below /assets/, and a document without inline script or style: the server's policy refuses both.
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), preloadCommon()],
  build: {
    target: 'es2023',
    // An image as a data: address would need another source in the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One style sheet, which the document names: it also styles what is visible before the script runs.
    cssCodeSplit: false,
    // test/web-app-files.test.ts holds what is loaded to a budget, compressed.
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'index', tags: ['$initial'], priority: areas.length + 2 },
            {
              name: common,
              test: /[\\/]node_modules[\\/]|[\\/]ui[\\/]src[\\/](?:lists|shell|api)[\\/]/,
              minShareCount: 2,
              priority: areas.length + 1,
            },
            ...areas.map((name, index) => ({
              name,
              test: new RegExp(`[\\\\/](?:ui[\\\\/]src|src[\\\\/]features)[\\\\/]${name}[\\\\/]`),
              priority: areas.length - index,
            })),
          ],
        },
      },
    },
  },
});

/** Every page needs the common chunk, so the browser loads it together with the script and not after it. */
function preloadCommon(): Plugin {
  return {
    name: 'preload-common',
    transformIndexHtml: {
      order: 'post',
      handler(_document, { bundle = {} }) {
        return Object.values(bundle)
          .filter((file) => file.type === 'chunk' && file.name === common)
          .map(({ fileName }) => ({
            tag: 'link',
            attrs: { rel: 'modulepreload', crossorigin: true, href: `/${fileName}` },
            injectTo: 'head',
          }));
      },
    },
  };
}
