"""Readers of office formats: PDF, DOCX, PPTX and XLSX."""
