import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// Content-hashed files below /assets/, and a document without inline script or style: the server's policy refuses both.
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    target: 'es2023',
    // An image as a data: address would need another source in the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // test/web-app-files.test.ts holds what is loaded to a budget, compressed.
    chunkSizeWarningLimit: 1_000,
  },
});
