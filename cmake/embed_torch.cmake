# Writes OUTPUT, which holds the texts of border.h with extension.cpp, of start.py and of fallback.py in FOLDER.
file(READ ${FOLDER}/border.h border)
file(READ ${FOLDER}/extension.cpp extension)
file(READ ${FOLDER}/start.py start)
file(READ ${FOLDER}/fallback.py fallback)
string(REPLACE "#pragma once\n" "" border "${border}")
file(WRITE ${OUTPUT} "#include \"adapters/torch/sources.h\"\n\nnamespace pasta::adapters::torch {\n\n"
     "constinit const std::string_view kExtensionSource = R\"PASTA(${border}${extension})PASTA\";\n"
     "constinit const std::string_view kFallbackSource = R\"PASTA(${fallback})PASTA\";\n"
     "constinit const char* const kStartSource = R\"PASTA(${start})PASTA\";\n\n}  // namespace pasta::adapters::torch\n")
